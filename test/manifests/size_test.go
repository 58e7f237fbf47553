package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerifySizeRefusesFilesOverOneMegabyte(t *testing.T) {
	for name, tc := range map[string]struct {
		size    int
		refused bool
	}{
		"exactly one megabyte": {1_000_000, false},
		"one byte more":        {1_000_001, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := "a large file.bin"
			if err := os.WriteFile(filepath.Join(dir, file), make([]byte, tc.size), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "git", "init", "--quiet")
			run(t, dir, "git", "add", ".")
			makefile, err := filepath.Abs(filepath.Join("..", "..", "Makefile"))
			if err != nil {
				t.Fatal(err)
			}
			output, err := inFolder(t, dir, "make", "-f", makefile, "verify-size").CombinedOutput()
			if refused := err != nil; refused != tc.refused || strings.Contains(string(output), file) != tc.refused {
				t.Errorf("make verify-size: %v, want refused = %v and the file named:\n%s", err, tc.refused, output)
			}
		})
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if output, err := inFolder(t, dir, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
}

func inFolder(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	return c
}
