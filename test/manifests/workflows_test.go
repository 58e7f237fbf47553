package manifests

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// A workflow that repeats commands of .ci/run would drift from what developers run.
func TestWorkflowsRunTheCIScriptOnly(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*.yml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d workflows found, error %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct{ Run, Uses string }
			}
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for name, job := range workflow.Jobs {
			var commands []string
			for _, step := range job.Steps {
				if step.Run != "" {
					commands = append(commands, step.Run)
				}
			}
			if len(commands) != 1 || commands[0] != ".ci/run" {
				t.Errorf("%s: job %s runs %q, want .ci/run alone", path, name, commands)
			}
		}
	}
	script, err := os.Stat(filepath.Join("..", "..", ".ci", "run"))
	if err != nil || script.Mode()&0o111 == 0 {
		t.Errorf(".ci/run is not executable: %v, error %v", script, err)
	}
}
