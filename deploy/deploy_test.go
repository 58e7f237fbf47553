package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestKustomizationsNameExistingFiles(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "kustomization.yaml" {
			return err
		}
		found++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var listed struct{ Resources, Components []string }
		if err := yaml.Unmarshal(text, &listed); err != nil {
			return err
		}
		for _, name := range append(listed.Resources, listed.Components...) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil {
				t.Errorf("%s names %s: %v", path, name, err)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d kustomizations found, error %v", found, err)
	}
}

// docs/install.md applies the files of pv-controller one by one.
func TestKustomizationListsAllFilesOfPVController(t *testing.T) {
	text, err := os.ReadFile("pv-controller/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var listed struct{ Resources []string }
	if err := yaml.Unmarshal(text, &listed); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("pv-controller/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(listed.Resources)+1 { // and the kustomization itself
		t.Errorf("the kustomization lists %v of the files %v", listed.Resources, files)
	}
}
