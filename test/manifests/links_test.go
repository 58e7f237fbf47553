package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	codeBlock    = regexp.MustCompile("(?s)```.*?```")
)

// documents returns the paths of all Markdown files, from the root of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == ".cache") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			relative, err := filepath.Rel(root, path)
			found = append(found, relative)
			return err
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d documents found, error %v", len(found), err)
	}
	return found
}

// anchors returns the link anchors of the headings of a document.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		plain := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	for _, name := range documents(t) {
		for _, match := range markdownLink.FindAllStringSubmatch(guide(t, name), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s: %v", name, match[1], err)
				continue
			}
			if anchor != "" && !anchors(guide(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no heading of that name", name, match[1])
			}
		}
	}
}
