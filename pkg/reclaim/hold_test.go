package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		state HoldState
		want  bool
	}{
		"in-tree without its finalizer":                            {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased}, true},
		"until the plugin has deleted it":                          {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Deleted: true}, false},
		"in-tree with its finalizer, which is enough":              {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, InTree: true}, false},
		"in-tree that no plugin here deletes: nobody would let go": {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Missing, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Mark: MarkPending}, false},
		"in-tree, Failed counts as Released":                       {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseFailed}, true},
		"in-tree that nobody claims":                               {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseAvailable}, false},
		"in-tree, Retain":                                          {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Deletes, Policy: storage.PolicyRetain, Phase: storage.PhaseReleased}, false},
		"in-tree, the gate is off":                                 {HoldState{Claim: storage.ClaimGone, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased}, false},
		"in-tree, its claim exists: nobody reclaims it":            {HoldState{Claim: storage.ClaimBound, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased}, false},
		"in-tree, its claim was never bound to it":                 {HoldState{Claim: storage.ClaimUnbound, Dynamic: true, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased}, true},
		"static in-tree, its claim was never bound to it":          {HoldState{Claim: storage.ClaimUnbound, Honor: true, Plugin: Deletes, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased}, false},
		"CSI with a mark, its claim exists":                        {HoldState{Claim: storage.ClaimBound, Honor: true, Plugin: External, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Mark: MarkPending}, false},
		"CSI without a mark: nobody waits":                         {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: External, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased}, false},
		"CSI with a mark":                                          {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: External, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Mark: MarkPending}, true},
		"CSI with a mark, migrated":                                {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: Migrated, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Mark: MarkPending}, true},
		"CSI with a mark that says done":                           {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: External, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Mark: MarkDone}, false},
		"CSI with a mark, the policy is Retain again":              {HoldState{Claim: storage.ClaimGone, Honor: true, Plugin: External, Policy: storage.PolicyRetain, Phase: storage.PhaseReleased, Mark: MarkPending}, false},
		"CSI with a mark, the gate is off":                         {HoldState{Claim: storage.ClaimGone, Plugin: External, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Mark: MarkPending}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Held(tc.state); got != tc.want {
				t.Errorf("Held(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// An in-tree volume that is held has somebody who lets go: in every such state, the
// reclaim goes on, fails visibly, or waits for another volume.
func TestAHeldInTreeVolumeIsReclaimed(t *testing.T) {
	for s := range inTreeStates {
		if s.Phase != storage.PhaseReleased && s.Phase != storage.PhaseFailed || !s.Deleting {
			continue
		}
		held := Held(HoldState{Claim: s.Claim, Dynamic: s.Dynamic, Honor: s.Honor, Plugin: s.Plugin, Policy: s.Policy, Phase: storage.PhaseReleased, InTree: s.Protected, Deleted: s.Deleted})
		// What is given back becomes Available, and is not protected any more.
		if d := DecideInTree(s); held && d.Action == Wait && d.Reason != HandleShared && d.Reason != GivenBack {
			t.Errorf("held for ever: %+v, %v", s, d)
		}
	}
}

func TestMarkOf(t *testing.T) {
	for text, want := range map[string]Mark{"pending": MarkPending, "done": MarkDone, "": NoMark, "perhaps": NoMark} {
		if got := MarkOf(made("d", map[string]string{"exeunt.io/reclaim": text})); got != want {
			t.Errorf("MarkOf(%q) = %v, want %v", text, got, want)
		}
	}
	if got := MarkOf(made("d", nil)); got != NoMark {
		t.Errorf("MarkOf without annotations = %v", got)
	}
}
