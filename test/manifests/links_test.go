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
	testName     = regexp.MustCompile("`((?:Test|Benchmark)[A-Z]\\w*)")
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Z]\w*)\(`)
	packagePath  = regexp.MustCompile("`((?:cmd|internal|pkg|test|examples)/[a-z0-9/_-]+)`")
)

// documents returns the paths of all Markdown files, from the root of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	return filesBelowRoot(t, ".md")
}

func filesBelowRoot(t *testing.T, suffix string) []string {
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
		if strings.HasSuffix(path, suffix) {
			relative, err := filepath.Rel(root, path)
			found = append(found, relative)
			return err
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d files *%s found, error %v", len(found), suffix, err)
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

// Documents name tests as evidence, so a renamed test must be renamed there.
func TestTestsNamedInDocumentsExist(t *testing.T) {
	exists := map[string]bool{}
	for _, name := range filesBelowRoot(t, "_test.go") {
		for _, match := range testFunction.FindAllStringSubmatch(guide(t, name), -1) {
			exists[match[1]] = true
		}
	}
	for _, name := range documents(t) {
		for _, match := range testName.FindAllStringSubmatch(guide(t, name), -1) {
			if !exists[match[1]] {
				t.Errorf("%s names %s, which is no test", name, match[1])
			}
		}
	}
}

func TestPackagesNamedInDocumentsExist(t *testing.T) {
	for _, name := range documents(t) {
		if name == "CHANGELOG.md" || strings.HasPrefix(name, filepath.Join("docs", "decisions")) {
			continue // their entries keep old names
		}
		for _, match := range packagePath.FindAllStringSubmatch(guide(t, name), -1) {
			if _, err := os.Stat(filepath.Join("..", "..", match[1])); err != nil {
				t.Errorf("%s names %s: %v", name, match[1], err)
			}
		}
	}
}

// A reader must find each package on the map of docs/architecture.md.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	overview := guide(t, filepath.Join("docs", "architecture.md"))
	missing := map[string]bool{}
	for _, name := range filesBelowRoot(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(name))
		inside := strings.HasPrefix(folder, "pkg/") || strings.HasPrefix(folder, "internal/")
		inside = inside && !strings.Contains(folder, "/testdata/") // the go command leaves it out, too
		if inside && !strings.HasSuffix(name, "_test.go") && !strings.Contains(overview, "`"+folder+"`") {
			missing[folder] = true
		}
	}
	for folder := range missing {
		t.Errorf("docs/architecture.md does not name %s", folder)
	}
}

var (
	qualified   = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Z]\\w*)`")
	declaration = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)([A-Z]\w*)`)
)

// Names such as reclaim.Decide lead a reader into the code.
func TestIdentifiersNamedInDocumentsExist(t *testing.T) {
	declared := map[string]bool{}
	for _, name := range filesBelowRoot(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range declaration.FindAllStringSubmatch(guide(t, name), -1) {
			declared[filepath.Base(filepath.Dir(name))+"."+match[1]] = true
		}
	}
	for _, name := range documents(t) {
		for _, match := range qualified.FindAllStringSubmatch(guide(t, name), -1) {
			// Package controller of that library is not in this repository.
			foreign := match[1] == "controller" && strings.Contains(guide(t, name), "sig-storage-lib-external-provisioner")
			if identifier := match[1] + "." + match[2]; !foreign && !declared[identifier] {
				t.Errorf("%s names %s, which is not declared", name, identifier)
			}
		}
	}
}
