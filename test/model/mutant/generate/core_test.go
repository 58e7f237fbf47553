package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// TestCoreTestsReachEveryMutant compiles the core with its mutants and runs its unit tests
// without a mutant: they must pass, and evaluate the place of each mutant.
func TestCoreTestsReachEveryMutant(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	result, err := generate(root, targets, defects)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := result.write(root, "", out); err != nil {
		t.Fatal(err)
	}
	var core []string
	for _, target := range targets {
		if !target.shell {
			core = append(core, target.folder)
		}
	}
	reached := reachedBy(t, root, out, core)
	for _, m := range result.mutants {
		if slices.Contains(core, filepath.Dir(m.File)) && !reached[m.ID] && m.Equivalent() == "" {
			t.Errorf("no unit test reaches mutant %d: %s", m.ID, m)
		}
	}
	checkEquivalents(t, result)
}

// reachedBy returns the IDs of the mutants that the unit tests of the folders evaluate.
func reachedBy(t *testing.T, root, out string, folders []string) map[int]bool {
	t.Helper()
	list := filepath.Join(out, "reached")
	args := []string{"test", "-count=1", "-vet=off", "-skip", "TestInvariantsOfEveryState", "-overlay", filepath.Join(out, "overlay.json")}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	command := exec.Command("go", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "EXEUNT_MUTANT=0", "EXEUNT_MUTANTS_REACHED="+list)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("the unit tests fail without a mutant: %v\n%s", err, output)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	reached := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		var id int
		if _, err := fmt.Sscan(line, &id); err != nil {
			t.Fatal(err)
		}
		reached[id] = true
	}
	return reached
}

// checkEquivalents fails for an explanation of a mutant that no longer exists.
func checkEquivalents(t *testing.T, result *result) {
	t.Helper()
	keys := map[string]bool{}
	for _, m := range result.mutants {
		keys[m.Key()] = true
	}
	for _, key := range mutant.Equivalents() {
		if !keys[key] {
			t.Errorf("the table of equivalent mutants has a mutant that no longer exists: %s", key)
		}
	}
}

func TestEveryDefectHasItsOwnName(t *testing.T) {
	names := map[string]bool{}
	for _, d := range slices.Concat(defects, garbageDefects, teardownDefects) {
		if names[d.name] || d.name == "" || d.what == "" {
			t.Errorf("the defect %q has no name or text of its own", d.name)
		}
		names[d.name] = true
	}
}
