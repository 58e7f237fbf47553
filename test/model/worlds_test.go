package model

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// TestSmallWorldsAreSafe explores the worlds that take seconds; "make model" explores all.
func TestSmallWorldsAreSafe(t *testing.T) {
	worlds := []Config{
		static(v1.PersistentVolumeReclaimDelete), static(v1.PersistentVolumeReclaimRetain),
		dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
		// A user deletes a volume that was never Bound while it is released.
		static(v1.PersistentVolumeReclaimDelete).with(faults[0].name, faults[0].add).with(faults[2].name, faults[2].add),
		switchedStatic(),
		static(v1.PersistentVolumeReclaimDelete).with("a denied write", deny),
		static(v1.PersistentVolumeReclaimDelete).with("an undone write", undo),
	}
	exploreAll(t, explore.Limits{Violations: 1}, worlds, func(r Result) { report(t, r) })
}

// TestKnownBugsAreFound explores each known bug until the model finds it, and the same world with
// our programs.
func TestKnownBugsAreFound(t *testing.T) {
	for _, bug := range KnownBugs() {
		t.Run(bug.Name, func(t *testing.T) {
			var found []string
			exploreAll(t, explore.Limits{States: 3_000_000, Until: bug.Rules}, []Config{bug.Config}, func(r Result) {
				for _, v := range r.Violations {
					found = append(found, v.Rule)
					if slices.Contains(bug.Rules, v.Rule) {
						fmt.Fprintf(os.Stderr, "found: %s, by %d states: %s\n", bug.Name, r.States, v)
					}
				}
			})
			if !slices.ContainsFunc(found, func(rule string) bool { return slices.Contains(bug.Rules, rule) }) {
				t.Errorf("the model does not find it: broken are %v, want one of %v", found, bug.Rules)
			}
		})
	}
}

// TestProgramEndsForJournalOfLaterLeader: a program that finds the journal of a later leader ends itself, which
// is nothing that is stuck, and leads again in a later term.
func TestProgramEndsForJournalOfLaterLeader(t *testing.T) {
	exploreAll(
		t, explore.Limits{},
		[]Config{smallWorld(
			"journal of a later leader", nil, []creation{newClass(remove), newClaim("data", class), newJournal(3)},
		)},
		func(r Result) { report(t, r) },
	)
}

// TestRulesKnowTheGates: a provisioner that ignores its gate ProvisioningJournal breaks a rule
// that only this gate has.
func TestRulesKnowTheGates(t *testing.T) {
	config := smallWorld("journal ignored", nil, []creation{newClass(remove), claimOf("data", class, namesDriver)})
	config.Programs[1].Name = "provisioner without journal"
	config.Programs[1].Build = func(env *process.Env) (*process.Program, error) {
		env.Journaled = false
		return process.Provisioner(env)
	}
	var broken []string
	exploreAll(t, explore.Limits{}, []Config{config}, func(r Result) {
		for _, v := range r.Violations {
			broken = append(broken, v.Rule)
		}
	})
	if !slices.Contains(broken, "CreatedWithoutEntry") {
		t.Errorf("broken rules are %v, want CreatedWithoutEntry among them", broken)
	}
}

// TestDeletedDiskOfEditedVolumeIsGivenUp: a user gives a Released volume to another claim while its disk is
// being deleted, which no program can know. A random walk did so.
func TestDeletedDiskOfEditedVolumeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edit := clearClaimRef("disk")
		edit.GivesUp = true
		lab := NewLab()
		defer lab.Close()
		w, err := newWorld(lab, smallWorld(
			"released", oneDisk, []creation{newVolume("disk", remove, referTo("data"), inPhase(v1.VolumeReleased))}, edit,
		))
		if err != nil {
			t.Fatal(err)
		}
		s := w.initial()
		s.disks, s.deleted = nil, s.disks
		if step, possible := w.userStep(s, 0); !possible || len(step.After.givenUp) != 1 {
			t.Errorf("possible %v, given up: %v", possible, step.After.givenUp)
		}
	})
}
