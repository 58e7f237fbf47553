package integration

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// 20 guests that need 3 s, deleted with a grace period of 10 s, beside a default of 1 s.
func TestStoryOfGraceKeepsItsPromise(t *testing.T) {
	command := exec.CommandContext(t.Context(), filepath.Join(binaries(), "sandbox"), "demo", "--against=upstream",
		"--story=grace", "--output=json", "--bin-dir="+binaries())
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	var verdict struct {
		AsPromised bool
		Results    []struct {
			Pair     string
			Measures []struct{ Value string }
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &verdict); err != nil {
		t.Fatal(err)
	}
	clean := map[string]string{}
	for _, result := range verdict.Results {
		clean[result.Pair] = result.Measures[0].Value
	}
	if !verdict.AsPromised || clean["ours"] != "20" || clean["upstream"] != "0" {
		t.Errorf("guests that shut down cleanly: %v\n%s", clean, output)
	}
}
