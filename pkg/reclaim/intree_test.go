package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
)

func TestDecideInTree(t *testing.T) {
	for name, tc := range map[string]struct {
		state InTreeState
		want  Decision
	}{
		"the claim is gone: first a live look":                          {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Protected: true}, Decision{Confirm, ClaimReleased}},
		"confirmed: the plugin deletes":                                 {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Protected: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"the volume was deleted first: the plugin deletes all the same": {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Protected: true, Deleting: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"the plugin is done: the object goes":                           {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Protected: true, Deleted: true}, Decision{DeleteObject, AlreadyReclaimed}},
		"the plugin is done: the finalizer goes":                        {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Protected: true, Deleting: true, Deleted: true}, Decision{Unprotect, AlreadyReclaimed}},
		"off: a volume deleted before its claim leaks as today":         {InTreeState{Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Deleting: true, Confirmed: true}, Decision{Wait, GateOff}},
		"off: a released volume is reclaimed":                           {InTreeState{Plugin: Deletes, Policy: Delete, Claim: ClaimGone, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"no plugin: Failed":                                             {InTreeState{Honor: true, Plugin: Missing, Policy: Delete, Claim: ClaimGone}, Decision{Fail, NoPlugin}},
		"the claim is back with the same UID: the plugin is not called": {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimHolds, Confirmed: true}, Decision{Wait, StillClaimed}},
		"the claim is bound elsewhere: reclaimed":                       {InTreeState{Honor: true, Plugin: Deletes, Policy: Delete, Claim: ClaimElsewhere, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"an external name, CSI or a migrated volume: the provisioner's": {InTreeState{Honor: true, Plugin: External, Policy: Delete, Claim: ClaimGone, Confirmed: true}, Decision{Wait, NotOurs}},
		"a migrated volume: the driver does everything":                 {InTreeState{Honor: true, Plugin: Migrated, Policy: Recycle, Claim: ClaimGone, Confirmed: true}, Decision{Wait, NotOurs}},
		"nobody recycles a CSI volume: Failed":                          {InTreeState{Honor: true, Plugin: External, Policy: Recycle, Claim: ClaimGone}, Decision{Fail, NoPlugin}},
		"Retain keeps the data":                                         {InTreeState{Honor: true, Plugin: Deletes, Policy: Retain, Claim: ClaimGone, Confirmed: true}, Decision{Wait, PolicyKeepsData}},
		"Recycle scrubs after a live look":                              {InTreeState{Honor: true, Plugin: Deletes, Policy: Recycle, Claim: ClaimGone, Confirmed: true}, Decision{RecycleVolume, ClaimReleased}},
		"an unknown policy: Failed, never deleted":                      {InTreeState{Honor: true, Plugin: Deletes, Claim: ClaimGone, Confirmed: true}, Decision{Fail, UnknownPolicy}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideInTree(tc.state); got != tc.want {
				t.Errorf("DecideInTree(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestThePluginIsCalledOnlyInAConfirmedReleasedState(t *testing.T) {
	called := 0
	for s := range inTreeStates {
		action := DecideInTree(s).Action
		if action != DeleteVolume && action != RecycleVolume {
			continue
		}
		called++
		policy := map[Action]Policy{DeleteVolume: Delete, RecycleVolume: Recycle}[action]
		released := s.Claim.Released() || action == DeleteVolume && s.Claim.LetsGo(s.Deleting)
		if !s.Confirmed || !released || s.Policy != policy || s.Plugin == External || s.Plugin == Migrated || s.Deleted && action == DeleteVolume {
			t.Errorf("plugin called in %+v", s)
		}
	}
	if called == 0 {
		t.Error("no state calls the plugin: the test proves nothing")
	}
}

func TestAnInTreeVolumeIsNeverStuckTerminating(t *testing.T) {
	for s := range inTreeStates {
		reclaimable := s.Deleting && s.Protected && s.Plugin != External && s.Plugin != Migrated && s.Claim.Released() && s.Policy == Delete && s.Honor
		if reclaimable && DecideInTree(s).Action == Wait {
			t.Errorf("stuck: %+v", s)
		}
	}
}

func TestDecideMarks(t *testing.T) {
	for name, tc := range map[string]struct {
		state MarksState
		want  Marks
	}{
		"a plugin that can delete, policy Delete":                   {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete}, Marks{AddInTree: true}},
		"the same, marked already":                                  {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, InTree: true}, Marks{}},
		"the same, being deleted: the server would refuse":          {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, Deleting: true}, Marks{}},
		"a name that no plugin deletes for: nobody could remove it": {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: Delete}, Marks{}},
		"migration switched off: hand-over in one patch":            {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, External: true, Migrated: MigratedRight}, Marks{AddInTree: true, RemoveExternal: true, ClearMigrated: true}},
		"a migrated plugin: hand-over the other way":                {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: Delete, InTree: true, External: true}, Marks{RemoveInTree: true, SetMigrated: true}},
		"a migrated plugin without the finalizer External":          {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: Delete, InTree: true, Migrated: MigratedRight}, Marks{RemoveInTree: true}},
		"a migrated plugin whose annotation names another driver":   {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: Retain, Migrated: MigratedWrong}, Marks{SetMigrated: true}},
		"an external name: External is not ours to touch":           {MarksState{Honor: true, Origin: ByExternal, Policy: Delete, External: true}, Marks{}},
		"a static volume of a migrated plugin: the driver's":        {MarksState{Honor: true, Origin: StaticMigrated, Policy: Delete}, Marks{SetMigrated: true}},
		"a static in-tree volume":                                   {MarksState{Honor: true, Origin: Static, Policy: Delete}, Marks{}},
		"Retain loses the finalizer":                                {MarksState{Honor: true, Origin: ByPlugin, Policy: Retain, InTree: true}, Marks{RemoveInTree: true}},
		"Recycle loses the finalizer":                               {MarksState{Honor: true, Origin: ByPlugin, Policy: Recycle, InTree: true}, Marks{RemoveInTree: true}},
		"Retain is provisioned without":                             {MarksState{Honor: true, Origin: ByPlugin, Policy: Retain}, Marks{}},
		"off: any volume with the finalizer loses it":               {MarksState{Origin: ByPlugin, Policy: Delete, InTree: true}, Marks{RemoveInTree: true}},
		"off: a static volume with the finalizer loses it":          {MarksState{Origin: Static, Policy: Delete, InTree: true}, Marks{RemoveInTree: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideMarks(tc.state); got != tc.want {
				t.Errorf("DecideMarks(%+v) = %+v, want %+v", tc.state, got, tc.want)
			}
		})
	}
}

// apply returns the state after the marks were written.
func apply(s MarksState, m Marks) MarksState {
	s.InTree = s.InTree && !m.RemoveInTree || m.AddInTree
	s.External = s.External && !m.RemoveExternal
	switch {
	case m.SetMigrated:
		s.Migrated = MigratedRight
	case m.ClearMigrated:
		s.Migrated = MigratedNowhere
	}
	return s
}

func TestMarksSettleAfterOneWrite(t *testing.T) {
	for s := range marksStates {
		after := apply(s, DecideMarks(s))
		if again := DecideMarks(after); !again.None() {
			t.Errorf("%+v: %+v is followed by %+v", s, DecideMarks(s), again)
		}
	}
}

func TestAHandOverLeavesNoGap(t *testing.T) {
	for s := range marksStates {
		after := apply(s, DecideMarks(s))
		guarded := s.InTree || s.External
		lost := guarded && !after.InTree && !after.External && s.Honor && s.Policy == Delete
		migratedAlone := s.Origin == ByMigratedPlugin || s.Origin == StaticMigrated || s.Origin == ByExternal // the provisioner adds External itself
		if lost && !migratedAlone && !s.Deleting {
			t.Errorf("%+v ends without a finalizer: %+v", s, after)
		}
	}
}

func TestInTreeIsAddedOnlyWhereItCanComeOff(t *testing.T) {
	for s := range marksStates {
		if DecideMarks(s).AddInTree && (s.Origin != ByPlugin || s.Deleting || !s.Honor || s.Policy != Delete) {
			t.Errorf("InTree added in %+v", s)
		}
	}
}
