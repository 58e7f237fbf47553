// Package test says which part of the tests runs which packages.
package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = ".."

// parts returns the lines of "make packages": the first word of each, and its other words.
func parts(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(run(t, "make", "--silent", "--no-print-directory", "packages")) {
		words := strings.Fields(line)
		found[words[0]] = words[1:]
	}
	return found
}

// run returns what the command prints, in the folder of the repository.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = root
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS")
	})
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, stderr.String())
	}
	return string(output)
}

// withTests returns the packages that have tests.
func withTests(t *testing.T, patterns ...string) []string {
	t.Helper()
	list := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, patterns...)
	return strings.Fields(run(t, "go", list...))
}

// make names the versions of Kubernetes that it knows, before it builds.
func TestUnknownVersionOfKubernetesIsRefused(t *testing.T) {
	for _, target := range []string{"controlplane", "apiserver"} {
		command := exec.CommandContext(t.Context(), "make", "--no-print-directory", target, "KUBE=1.33")
		command.Dir = root
		output, err := command.Output()
		if want := "KUBE must be one of: 1.34 1.35 1.36\n"; err == nil || string(output) != want {
			t.Errorf("make %s KUBE=1.33 prints %q, %v; want %q", target, output, err, want)
		}
	}
}

// A part runs whole packages, but for the tests of promises and of concurrent packages, which other parts run, too.
func TestEveryPackageIsInAPart(t *testing.T) {
	found := parts(t)
	var all []string
	for _, part := range []string{"test-unit", "test-proof", "test-model", "e2e"} {
		if !slices.Contains(found["all-parts"], part) {
			t.Errorf("make test-all does not run %s", part)
		}
		all = append(all, withTests(t, found[part]...)...)
	}
	for _, name := range withTests(t, "./...") {
		if count := len(slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other != name })); count != 1 {
			t.Errorf("%d parts run %s, want one", count, name)
		}
	}
}

// Another module has a part that changes into its folder.
func TestEveryModuleWithTestsIsInAPart(t *testing.T) {
	recipes, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(run(t, "git", "ls-files", "*_test.go")) {
		module := filepath.Dir(strings.TrimSpace(file))
		for module != "." && !exists(filepath.Join(root, module, "go.mod")) {
			module = filepath.Dir(module)
		}
		if module != "." && !strings.Contains(module, "testdata") && !strings.Contains(string(recipes), "cd "+module+" && ") {
			t.Errorf("no part runs %s of the module in %s", strings.TrimSpace(file), module)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func TestPromisesNameTests(t *testing.T) {
	found := parts(t)
	var sources strings.Builder
	for _, folder := range found["test-promises"] {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	for _, name := range found["promises"] {
		if !strings.Contains(sources.String(), "func "+name+"(") {
			t.Errorf("make test names %s, which does not exist", name)
		}
	}
	if len(found["promises"]) == 0 {
		t.Error("make test names no end-to-end test")
	}
}

func TestChangesRunTheReadmesTests(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^exec test/parts.sh (.*)$`).FindSubmatch(script)
	if line == nil {
		t.Fatal(".ci/run names no parts")
	}
	// The last two run tests of e2e and of test-apiserver.
	named, all := strings.Fields(string(line[1])), append(parts(t)["all-parts"], "test", "test-beside", "test-apiserver-rows")
	for _, part := range named {
		if !slices.Contains(all, part) {
			t.Errorf(".ci/run runs %s, make test-all does not", part)
		}
	}
	if !slices.Contains(named, "test") {
		t.Error(".ci/run does not run make test")
	}
}
