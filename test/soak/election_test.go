package main

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestSomeLeadersOutlastRestores(t *testing.T) {
	patient := 0
	for seed := range uint64(30) {
		if e := electionOf(seed); e.renewal > callTimeout+12*time.Second {
			patient++
		} else if e.renewal >= e.duration {
			t.Errorf("seed %d: %+v", seed, e)
		}
	}
	if patient != 10 {
		t.Errorf("in %d of 30 seeds a leader outlasts a restore, want 10", patient)
	}
}

func TestLeaderThatGoesOnAfterRestoreIsFound(t *testing.T) {
	process, err := sandbox.Start(t.Context(), sandbox.Program{Name: "sleep", Path: "/bin/sleep", Args: []string{"60"},
		LogFile: t.TempDir() + "/log"})
	if err != nil {
		t.Fatal(err)
	}
	if found := goingOn([]*sandbox.Process{process}, 10*time.Millisecond); len(found) != 1 {
		t.Errorf("a process that runs: %v", found)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if found := goingOn([]*sandbox.Process{process}, time.Hour); len(found) > 0 {
		t.Errorf("a process that ended: %v", found)
	}
}
