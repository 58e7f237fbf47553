package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName     = regexp.MustCompile("`((?:Test|Benchmark)[A-Z]\\w*)")
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Z]\w*)\(`)
	packagePath  = regexp.MustCompile("`((?:cmd|internal|pkg|test|examples)/[a-z0-9/_-]+)`")
)

// repositoryFiles returns the paths of all files that end in suffix, from the root of the repository.
func repositoryFiles(t *testing.T, suffix string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == ".git" || path == "bin" || path == ".cache"):
			return fs.SkipDir
		case strings.HasSuffix(path, suffix):
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d files *%s found, error %v", len(found), suffix, err)
	}
	return found
}

// contents returns the text of a file, whose path begins at the root of the repository.
func contents(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Documents name tests as evidence, so a renamed test must be renamed there.
func TestTestsNamedInDocumentsExist(t *testing.T) {
	exists := map[string]bool{}
	for _, name := range repositoryFiles(t, "_test.go") {
		for _, match := range testFunction.FindAllStringSubmatch(contents(t, name), -1) {
			exists[match[1]] = true
		}
	}
	for _, name := range repositoryFiles(t, ".md") {
		for _, match := range testName.FindAllStringSubmatch(contents(t, name), -1) {
			if !exists[match[1]] {
				t.Errorf("%s names %s, which is no test", name, match[1])
			}
		}
	}
}

func TestPackagesNamedInDocumentsExist(t *testing.T) {
	for _, name := range repositoryFiles(t, ".md") {
		if name == "CHANGELOG.md" || strings.HasPrefix(name, filepath.Join("docs", "decisions")) {
			continue // their entries keep old names
		}
		for _, match := range packagePath.FindAllStringSubmatch(contents(t, name), -1) {
			if _, err := os.Stat(filepath.Join("..", match[1])); err != nil {
				t.Errorf("%s names %s: %v", name, match[1], err)
			}
		}
	}
}

var (
	qualified   = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Z]\\w*)`")
	declaration = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)([A-Z]\w*)`)
)

// Names such as reclaim.Decide lead a reader into the code.
func TestIdentifiersNamedInDocumentsExist(t *testing.T) {
	declared := map[string]bool{}
	for _, name := range repositoryFiles(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range declaration.FindAllStringSubmatch(contents(t, name), -1) {
			declared[filepath.Base(filepath.Dir(name))+"."+match[1]] = true
		}
	}
	for _, name := range repositoryFiles(t, ".md") {
		for _, match := range qualified.FindAllStringSubmatch(contents(t, name), -1) {
			// Package controller of that library is not in this repository.
			foreign := match[1] == "controller" && strings.Contains(contents(t, name), "sig-storage-lib-external-provisioner")
			if identifier := match[1] + "." + match[2]; !foreign && !declared[identifier] {
				t.Errorf("%s names %s, which is not declared", name, identifier)
			}
		}
	}
}
