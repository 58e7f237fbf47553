package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

func TestVerdictOfMutant(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "tests")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n[ \"$EXEUNT_MUTANT\" != 1 ]\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	explained := mutant.Mutant{ID: 3, File: "pkg/journal/lease.go", Func: "KindOf", Operator: "condition dropped",
		Original: "err != nil", Changed: "false"}
	for name, tc := range map[string]struct {
		mutant  mutant.Mutant
		reached bool
		want    verdict
	}{
		"tests fail":                      {mutant.Mutant{ID: 1}, true, killed},
		"tests pass":                      {mutant.Mutant{ID: 2}, true, survived},
		"tests do not evaluate the place": {mutant.Mutant{ID: 2}, false, unreached},
		"tests pass for a reason":         {explained, true, equivalent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(".", binary, tc.mutant, map[int]bool{tc.mutant.ID: tc.reached}, time.Minute); got != tc.want {
				t.Errorf("judge = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMutantsThatTheModelKillsAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "killed")
	r := &runner{}
	if err := r.readKilled(file); err != nil || len(r.byModel) != 0 {
		t.Errorf("without a file: %v, %v, want nothing", r.byModel, err)
	}
	if err := os.WriteFile(file, []byte("pkg/a.go Decide: case removed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.readKilled(file); err != nil || !r.byModel["pkg/a.go Decide: case removed"] {
		t.Errorf("with a file: %v, %v, want the mutant", r.byModel, err)
	}
}

func TestMutantsOfOtherPackagesDoNotCount(t *testing.T) {
	r := &runner{workers: 1}
	all := []mutant.Mutant{{ID: 1, File: "pkg/a/a.go"}, {ID: 2, File: "pkg/b/b.go"}, {ID: 3, File: "pkg/a/deep/c.go"}}
	r.counts = r.verdicts(all, "pkg/a", "/bin/false", map[int]bool{1: true, 2: true, 3: true}, time.Minute)
	if r.total() != 1 || r.counts[killed] != 1 {
		t.Errorf("verdicts %v, want one killed mutant", r.counts)
	}
}

func TestLastLinesOfTwoModelsAreAdded(t *testing.T) {
	got, err := sum("model: 2 configurations, 30 states, 0 violations, 4 of 5 mutants killed",
		"garbage: 1 configurations, 7 states, 1 violations, 2 of 3 mutants killed")
	if want := "model: 3 configurations, 37 states, 1 violations, 6 of 8 mutants killed"; err != nil || got != want {
		t.Errorf("sum = %q, %v, want %q", got, err, want)
	}
	if _, err := sum("model: 2 configurations", "model: 2 configurations"); err == nil {
		t.Error("a line without all numbers is accepted")
	}
}
