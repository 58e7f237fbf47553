package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
)

func TestHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		state HoldState
		want  bool
	}{
		"in-tree without its finalizer":                            {HoldState{Claim: ClaimGone, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Released}, true},
		"until the plugin has deleted it":                          {HoldState{Claim: ClaimGone, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Released, Deleted: true}, false},
		"in-tree with its finalizer, which is enough":              {HoldState{Claim: ClaimGone, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Released, InTree: true}, false},
		"in-tree that no plugin here deletes: nobody would let go": {HoldState{Claim: ClaimGone, Honor: true, Plugin: Missing, Policy: Delete, Phase: Released, Mark: MarkPending}, false},
		"in-tree, Failed counts as Released":                       {HoldState{Claim: ClaimGone, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Failed}, true},
		"in-tree that nobody claims":                               {HoldState{Claim: ClaimGone, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Available}, false},
		"in-tree, Retain":                                          {HoldState{Claim: ClaimGone, Honor: true, Plugin: Deletes, Policy: Retain, Phase: Released}, false},
		"in-tree, the gate is off":                                 {HoldState{Claim: ClaimGone, Plugin: Deletes, Policy: Delete, Phase: Released}, false},
		"in-tree, its claim exists: nobody reclaims it":            {HoldState{Claim: ClaimHolds, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Released}, false},
		"in-tree, its claim was never bound to it":                 {HoldState{Claim: ClaimUnbound, Honor: true, Plugin: Deletes, Policy: Delete, Phase: Released}, true},
		"CSI with a mark, its claim exists":                        {HoldState{Claim: ClaimHolds, Honor: true, Plugin: External, Policy: Delete, Phase: Released, Mark: MarkPending}, false},
		"CSI without a mark: nobody waits":                         {HoldState{Claim: ClaimGone, Honor: true, Plugin: External, Policy: Delete, Phase: Released}, false},
		"CSI with a mark":                                          {HoldState{Claim: ClaimGone, Honor: true, Plugin: External, Policy: Delete, Phase: Released, Mark: MarkPending}, true},
		"CSI with a mark, migrated":                                {HoldState{Claim: ClaimGone, Honor: true, Plugin: Migrated, Policy: Delete, Phase: Released, Mark: MarkPending}, true},
		"CSI with a mark that says done":                           {HoldState{Claim: ClaimGone, Honor: true, Plugin: External, Policy: Delete, Phase: Released, Mark: MarkDone}, false},
		"CSI with a mark, the policy is Retain again":              {HoldState{Claim: ClaimGone, Honor: true, Plugin: External, Policy: Retain, Phase: Released, Mark: MarkPending}, false},
		"CSI with a mark, the gate is off":                         {HoldState{Claim: ClaimGone, Plugin: External, Policy: Delete, Phase: Released, Mark: MarkPending}, false},
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
		if s.Phase != Released && s.Phase != Failed || !s.Deleting {
			continue
		}
		held := Held(HoldState{Claim: s.Claim, Honor: s.Honor, Plugin: s.Plugin, Policy: s.Policy, Phase: Released, InTree: s.Protected, Deleted: s.Deleted})
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
