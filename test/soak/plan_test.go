package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestPlanDependsOnSeedOnly(t *testing.T) {
	const duration = 5 * time.Minute
	if difference := cmp.Diff(NewPlan(7, duration), NewPlan(7, duration)); difference != "" {
		t.Errorf("two plans of one seed differ:\n%s", difference)
	}
	if cmp.Equal(NewPlan(7, duration), NewPlan(8, duration)) {
		t.Error("two seeds have the same plan")
	}
}

func TestPlanHasEveryKindWithinTheRun(t *testing.T) {
	revisions := map[Revision]int{}
	for seed := range uint64(50) {
		count := map[ActionKind]int{}
		last := time.Duration(0)
		for _, action := range NewPlan(seed, 5*time.Minute) {
			count[action.Kind]++
			if action.At < last || action.At > 5*time.Minute-lastAction && action.Kind != Restore {
				t.Fatalf("seed %d: %s at %s after %s", seed, action.Kind, action.At, last)
			}
			last = action.At
			revisions[action.Revision]++
		}
		for _, kind := range []ActionKind{KillLeader, FreezeLeader, Snapshot, Restore, ChangePhase} {
			if count[kind] == 0 {
				t.Errorf("seed %d has no action %q", seed, kind)
			}
		}
		if count[Snapshot] != 1 || count[Restore] != 1 {
			t.Errorf("seed %d has %d snapshots and %d restores, want 1 of each", seed, count[Snapshot], count[Restore])
		}
	}
	if same, raised := revisions[SameRevision], revisions[RaisedRevision]; same < 10 || raised < 10 || same+raised != 50 {
		t.Errorf("%d restores with the same revision and %d with a raised one, want about as many", same, raised)
	}
}

func TestCollectorIsDisturbedToo(t *testing.T) {
	seen := map[ActionKind]bool{}
	for seed := range uint64(20) {
		for _, action := range NewPlan(seed, 5*time.Minute) {
			if action.Program == Collector {
				seen[action.Kind] = true
			}
		}
	}
	for _, kind := range []ActionKind{Kill, KillLeader, Freeze, FreezeLeader} {
		if !seen[kind] {
			t.Errorf("no plan has %q for the collector", kind)
		}
	}
}

func TestFaultsOfPlanAreValid(t *testing.T) {
	for seed := range uint64(50) {
		for _, action := range NewPlan(seed, time.Minute) {
			driver, err := csimock.New(csimock.Config{Faults: action.Phase.Faults})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := driver.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestChoicesDependOnSeedUserAndNumber(t *testing.T) {
	if one, two := NewChoices(1, 2, 3), NewChoices(1, 2, 3); one != two {
		t.Errorf("%+v differs from %+v", one, two)
	}
	var first, second []Choices
	for n := range 20 {
		first, second = append(first, NewChoices(1, 0, n)), append(second, NewChoices(1, 1, n))
	}
	if slices.Equal(first, second) {
		t.Error("two users make the same choices")
	}
}

func TestChoicesReachEverySortAndOrder(t *testing.T) {
	seen := map[any]bool{}
	for n := range 500 {
		c := NewChoices(1, 0, n)
		seen[c.Sort], seen[c.Order], seen[c.Flip] = true, true, true
		if c.Kept() && c.Early {
			t.Errorf("%+v: the volume of a claim that was never bound is kept", c)
		}
	}
	for _, want := range []any{Dynamic, Waiting, Static, Clone, Spaced, ClaimFirst, VolumeFirst, AtOnce, NoFlip, FlipBound,
		FlipReleased, FlipRacing} {
		if !seen[want] {
			t.Errorf("no user chooses %v", want)
		}
	}
}
