package pvwriter

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// writesVolume matches the code that writes a field of a PersistentVolume, or a
// PersistentVolume as a whole.
var writesVolume = regexp.MustCompile(`\.PatchVolume\(|PersistentVolumes\(\)\.(Create|Update|UpdateStatus|Patch|Delete|Apply)\(`)

func TestOnlyThisPackageWritesVolumes(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "../pvwriter/") {
			return err
		}
		source, err := os.ReadFile(path)
		if found := writesVolume.Find(source); found != nil {
			t.Errorf("%s contains %s", path, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachFieldIsWrittenByOneFile(t *testing.T) {
	for _, field := range []string{
		`"/spec/claimRef"`, `"/status/phase"`, `"/status/message"`, `finalizer.VolumeProtection}`,
		`storage.AnnDynamicallyProvisioned, `, `storage.AnnMigratedTo`,
	} {
		files, err := filepath.Glob("*.go")
		if err != nil {
			t.Fatal(err)
		}
		var writers []string
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") && strings.Contains(string(source), field) {
				writers = append(writers, file)
			}
		}
		if len(writers) != 1 {
			t.Errorf("%s is written by %v, want one file", field, writers)
		}
	}
}
