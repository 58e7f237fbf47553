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

func TestSomeProgramsRunWithoutElection(t *testing.T) {
	alone := 0
	for seed := range uint64(30) {
		ours, upstream := &world{config: Config{Seed: seed}}, &world{config: Config{Seed: seed, Upstream: true}}
		if ours.replicasOf(Collector) == 1 && ours.replicasOf(PVController) == 1 && ours.replicasOf(Provisioner) == Replicas {
			alone++
		} else if ours.replicasOf(Collector) != Replicas || ours.replicasOf(PVController) != Replicas {
			t.Errorf("seed %d: one program alone", seed)
		}
		if upstream.replicasOf(PVController) != Replicas || upstream.replicasOf(Collector) != 0 || upstream.treeUsers() != 0 {
			t.Errorf("seed %d: upstream's programs run otherwise", seed)
		}
	}
	if alone != 10 {
		t.Errorf("in %d of 30 seeds programs run alone, want 10", alone)
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
