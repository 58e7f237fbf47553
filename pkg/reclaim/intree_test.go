package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// released is the state of an in-tree volume whose claim is gone; change may alter it.
func released(policy storage.Policy, change ...func(*InTreeState)) InTreeState {
	s := InTreeState{Honor: true, Plugin: Deletes, Recycles: true, Policy: policy, Phase: storage.PhaseReleased, Claim: storage.ClaimGone}
	for _, f := range change {
		f(&s)
	}
	return s
}

func confirmed(s *InTreeState)  { s.Confirmed = true }
func protected(s *InTreeState)  { s.Protected = true }
func deleting(s *InTreeState)   { s.Deleting = true }
func deleted(s *InTreeState)    { s.Deleted = true }
func failed(s *InTreeState)     { s.Phase = storage.PhaseFailed }
func off(s *InTreeState)        { s.Honor = false }
func shared(s *InTreeState)     { s.Shared = true }
func used(s *InTreeState)       { s.Used = true }
func dynamic(s *InTreeState)    { s.Dynamic = true }
func recycled(s *InTreeState)   { s.Recycled = true }
func unrecycled(s *InTreeState) { s.Recycles = false }
func bound(s *InTreeState)      { s.Phase = storage.PhaseBound }

func plugin(p Plugin) func(*InTreeState)               { return func(s *InTreeState) { s.Plugin = p } }
func claim(c storage.ClaimRelation) func(*InTreeState) { return func(s *InTreeState) { s.Claim = c } }
func pod(r Recycler) func(*InTreeState)                { return func(s *InTreeState) { s.Recycler = r } }

func TestDecideInTree(t *testing.T) {
	for name, tc := range map[string]struct {
		state InTreeState
		want  Decision
	}{
		"the claim is gone: first a live look":                          {released(storage.PolicyDelete, protected), Decision{Confirm, ClaimReleased}},
		"confirmed: the plugin deletes":                                 {released(storage.PolicyDelete, protected, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"Failed counts as Released":                                     {released(storage.PolicyDelete, protected, failed, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"a static volume is deleted too":                                {released(storage.PolicyDelete, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the volume was deleted first: the plugin deletes all the same": {released(storage.PolicyDelete, protected, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the same without the finalizer: pv-protection holds it":        {released(storage.PolicyDelete, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the plugin is done: the object goes":                           {released(storage.PolicyDelete, protected, deleted), Decision{DeleteObject, AlreadyReclaimed}},
		"the plugin is done: the finalizer goes":                        {released(storage.PolicyDelete, protected, deleting, deleted), Decision{Unprotect, AlreadyReclaimed}},
		"the plugin is done and no finalizer is left":                   {released(storage.PolicyDelete, deleting, deleted, confirmed), Decision{Wait, AlreadyReclaimed}},
		"off: a volume deleted before its claim leaks as today":         {released(storage.PolicyDelete, off, deleting, confirmed), Decision{Wait, GateOff}},
		"off: a released volume is reclaimed":                           {released(storage.PolicyDelete, off, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"no plugin: Failed":                                             {released(storage.PolicyDelete, plugin(Missing)), Decision{Fail, NoPlugin}},
		"the claim is back with the same UID: the plugin is not called": {released(storage.PolicyDelete, claim(storage.ClaimBound), confirmed), Decision{Wait, StillClaimed}},
		"the volume turns out to be bound: the plugin is not called":    {released(storage.PolicyDelete, bound, confirmed), Decision{Wait, StillClaimed}},
		"deleted before it was ever bound: nobody has used it":          {released(storage.PolicyDelete, claim(storage.ClaimUnbound), dynamic, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"an unbound claim may still get a volume that stays":            {released(storage.PolicyDelete, claim(storage.ClaimUnbound), dynamic, confirmed), Decision{Wait, StillClaimed}},
		"a volume that is recycled is not taken from its claim":         {released(storage.PolicyRecycle, claim(storage.ClaimUnbound), dynamic, deleting, confirmed), Decision{Wait, StillClaimed}},
		"the claim took another volume, this one was made for it":       {released(storage.PolicyDelete, dynamic, claim(storage.ClaimElsewhere), confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the claim took another volume, this one is a person's":         {released(storage.PolicyDelete, claim(storage.ClaimElsewhere), confirmed), Decision{Wait, GivenBack}},
		"two volumes at one place: the other's data is kept":            {released(storage.PolicyDelete, shared, protected, confirmed), Decision{Wait, HandleShared}},
		"an external name, CSI or a migrated volume: the provisioner's": {released(storage.PolicyDelete, plugin(External), confirmed), Decision{Wait, NotOurs}},
		"a migrated volume: the driver does everything":                 {released(storage.PolicyRecycle, plugin(Migrated), confirmed), Decision{Wait, NotOurs}},
		"Retain keeps the data":                                         {released(storage.PolicyRetain, confirmed), Decision{Wait, PolicyKeepsData}},
		"an unknown policy: Failed, never deleted":                      {released(storage.PolicyUnknown, confirmed), Decision{Fail, UnknownPolicy}},

		"Recycle: first a live look":                                {released(storage.PolicyRecycle), Decision{Confirm, ClaimReleased}},
		"Recycle, confirmed and no pod: it is started":              {released(storage.PolicyRecycle, confirmed), Decision{StartRecycler, ClaimReleased}},
		"Recycle, the pod runs: its own event tells more":           {released(storage.PolicyRecycle, pod(RecyclerRuns)), Decision{Wait, RecyclerBusy}},
		"Recycle, the pod turns out to run":                         {released(storage.PolicyRecycle, confirmed, pod(RecyclerRuns)), Decision{Wait, RecyclerBusy}},
		"Recycle, an old pod is going":                              {released(storage.PolicyRecycle, pod(RecyclerGoing)), Decision{Wait, RecyclerBusy}},
		"Recycle, somebody else's pod: removed, never believed":     {released(storage.PolicyRecycle, confirmed, pod(ForeignRecycler)), Decision{RemoveRecycler, RecyclerUnknown}},
		"Recycle, a cache says that the pod succeeded":              {released(storage.PolicyRecycle, pod(RecyclerSucceeded)), Decision{Confirm, ClaimReleased}},
		"Recycle, the pod succeeded":                                {released(storage.PolicyRecycle, confirmed, pod(RecyclerSucceeded)), Decision{FinishRecycling, RecyclerDone}},
		"Recycle, the pod failed":                                   {released(storage.PolicyRecycle, confirmed, pod(RecyclerFailed)), Decision{RetryRecycling, RecyclerBroken}},
		"Recycle, a Failed volume is tried again":                   {released(storage.PolicyRecycle, failed, confirmed), Decision{StartRecycler, ClaimReleased}},
		"recycled: a live look, for the claim may be back":          {released(storage.PolicyRecycle, recycled, pod(RecyclerGoing)), Decision{Confirm, ClaimReleased}},
		"recycled and confirmed: it can be claimed again":           {released(storage.PolicyRecycle, recycled, confirmed, pod(RecyclerGoing)), Decision{MakeAvailable, AlreadyReclaimed}},
		"nobody recycles a CSI volume: Failed":                      {released(storage.PolicyRecycle, plugin(External), unrecycled), Decision{Fail, NoPlugin}},
		"Recycle, a pod uses the volume":                            {released(storage.PolicyRecycle, used), Decision{Wait, VolumeUsed}},
		"Recycle, another volume at the same place":                 {released(storage.PolicyRecycle, shared), Decision{Wait, HandleShared}},
		"Recycle, the object is going":                              {released(storage.PolicyRecycle, deleting, confirmed), Decision{Wait, VolumeGoing}},
		"the policy turned to Retain while the pod ran":             {released(storage.PolicyRetain, pod(RecyclerSucceeded)), Decision{RemoveRecycler, RecyclerLeftOver}},
		"the policy turned to Retain: the pod that runs is stopped": {released(storage.PolicyRetain, pod(RecyclerRuns)), Decision{RemoveRecycler, RecyclerLeftOver}},
		"a pod that is stopped already is not stopped again":        {released(storage.PolicyRetain, pod(RecyclerGoing)), Decision{Wait, PolicyKeepsData}},
		"somebody else's pod is left alone under Retain":            {released(storage.PolicyRetain, pod(ForeignRecycler)), Decision{Wait, PolicyKeepsData}},
		"the object is going and its pod runs: left to finish":      {released(storage.PolicyRecycle, deleting, pod(RecyclerRuns)), Decision{Wait, VolumeGoing}},
		"the object is going and its pod has finished":              {released(storage.PolicyRecycle, deleting, pod(RecyclerFailed)), Decision{RemoveRecycler, RecyclerLeftOver}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideInTree(tc.state); got != tc.want {
				t.Errorf("DecideInTree(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestThePluginIsCalledOnlyInAConfirmedReleasedState(t *testing.T) {
	policy := map[Action]storage.Policy{DeleteVolume: storage.PolicyDelete, StartRecycler: storage.PolicyRecycle, FinishRecycling: storage.PolicyRecycle, MakeAvailable: storage.PolicyRecycle}
	called := map[Action]int{}
	for s := range inTreeStates {
		action := DecideInTree(s).Action
		needed, destroys := policy[action]
		if !destroys {
			continue
		}
		called[action]++
		foreign := s.Plugin == Migrated || action == DeleteVolume && s.Plugin != Deletes || action != DeleteVolume && !s.Recycles
		going := s.Deleting && (action != DeleteVolume || !s.Honor)
		neverBound := s.Claim == storage.ClaimUnbound && s.Dynamic && s.Deleting && action == DeleteVolume
		mine := s.Claim == storage.ClaimGone || neverBound || s.Claim == storage.ClaimElsewhere && s.Dynamic && s.Policy == storage.PolicyDelete
		if !s.Confirmed || s.Policy != needed || foreign || going || !mine || s.Phase != storage.PhaseReleased && s.Phase != storage.PhaseFailed {
			t.Errorf("%v in %+v", action, s)
		}
		if (s.Shared || s.Used && action != DeleteVolume) && action != MakeAvailable || s.Deleted && action == DeleteVolume {
			t.Errorf("%v in %+v", action, s)
		}
		if action == MakeAvailable && !s.Recycled || action == FinishRecycling && s.Recycler != RecyclerSucceeded {
			t.Errorf("a volume is given away that was not scrubbed: %+v", s)
		}
	}
	if len(called) != len(policy) {
		t.Errorf("only %v are ever done: the test proves nothing", called)
	}
}

func TestAnInTreeVolumeIsNeverStuckTerminating(t *testing.T) {
	for s := range inTreeStates {
		over := s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed
		reclaimable := over && s.Deleting && s.Protected && s.Plugin != External && s.Plugin != Migrated && s.Claim == storage.ClaimGone && s.Policy == storage.PolicyDelete && s.Honor
		if d := DecideInTree(s); reclaimable && d.Action == Wait && d.Reason != HandleShared {
			t.Errorf("stuck: %+v, %v", s, d)
		}
	}
}

func TestARecycledVolumeIsNeverStuck(t *testing.T) {
	for s := range inTreeStates {
		over := s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed
		recyclable := over && s.Policy == storage.PolicyRecycle && s.Plugin != Migrated && s.Claim == storage.ClaimGone && !s.Deleting
		waits := s.Shared || s.Used || s.Recycler == RecyclerRuns || s.Recycler == RecyclerGoing
		if d := DecideInTree(s); recyclable && !waits && d.Action == Wait {
			t.Errorf("stuck: %+v, %v", s, d)
		}
		if d := DecideInTree(s); d.Action == Confirm && s.Confirmed {
			t.Errorf("confirms for ever: %+v", s)
		}
	}
}

func TestDecideMarks(t *testing.T) {
	for name, tc := range map[string]struct {
		state MarksState
		want  Marks
	}{
		"a plugin that can delete, policy Delete":                                       {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete}, Marks{AddInTree: true}},
		"the same, marked already":                                                      {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete, InTree: true}, Marks{}},
		"the same, being deleted: the server would refuse":                              {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete, Deleting: true}, Marks{}},
		"a name that no plugin deletes for: nobody could remove it":                     {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: storage.PolicyDelete}, Marks{}},
		"migration switched off: hand-over in one patch":                                {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete, External: true, Migrated: MigratedRight}, Marks{AddInTree: true, RemoveExternal: true, ClearMigrated: true}},
		"a migrated plugin: hand-over the other way":                                    {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: storage.PolicyDelete, InTree: true, External: true}, Marks{RemoveInTree: true, SetMigrated: true}},
		"a migrated plugin without the finalizer External":                              {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: storage.PolicyDelete, InTree: true, Migrated: MigratedRight}, Marks{RemoveInTree: true}},
		"a migrated plugin whose annotation names another driver":                       {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: storage.PolicyRetain, Migrated: MigratedWrong}, Marks{SetMigrated: true}},
		"an external name: External is not ours to touch":                               {MarksState{Honor: true, Origin: ByExternal, Policy: storage.PolicyDelete, External: true}, Marks{}},
		"a static volume of a migrated plugin: the driver's":                            {MarksState{Honor: true, Origin: StaticMigrated, Policy: storage.PolicyDelete}, Marks{SetMigrated: true}},
		"migration off, being deleted already: External stays until the plugin is done": {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete, External: true, Deleting: true}, Marks{}},
		"migration off, both finalizers":                                                {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete, External: true, InTree: true, Deleting: true}, Marks{RemoveExternal: true}},
		"migration off, Retain: nobody else would take External off":                    {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyRetain, External: true, Migrated: MigratedRight}, Marks{RemoveExternal: true, ClearMigrated: true}},
		"nobody claimed it and it is going: no finalizer holds it":                      {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyDelete, InTree: true, External: true, Deleting: true, Unclaimed: true}, Marks{RemoveInTree: true, RemoveExternal: true}},
		"a finalizer for which the plugin is missing is removed":                        {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: storage.PolicyDelete, InTree: true}, Marks{RemoveInTree: true}},
		"it is removed from a volume that is being deleted, too":                        {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: storage.PolicyDelete, InTree: true, Deleting: true}, Marks{RemoveInTree: true}},
		"a static in-tree volume":                                                       {MarksState{Honor: true, Origin: Static, Policy: storage.PolicyDelete}, Marks{}},
		"Retain loses the finalizer":                                                    {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyRetain, InTree: true}, Marks{RemoveInTree: true}},
		"Recycle loses the finalizer":                                                   {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyRecycle, InTree: true}, Marks{RemoveInTree: true}},
		"Retain is provisioned without":                                                 {MarksState{Honor: true, Origin: ByPlugin, Policy: storage.PolicyRetain}, Marks{}},
		"off: any volume with the finalizer loses it":                                   {MarksState{Origin: ByPlugin, Policy: storage.PolicyDelete, InTree: true}, Marks{RemoveInTree: true}},
		"off: a static volume with the finalizer loses it":                              {MarksState{Origin: Static, Policy: storage.PolicyDelete, InTree: true}, Marks{RemoveInTree: true}},
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
		lost := guarded && !after.InTree && !after.External && s.Honor && s.Policy == storage.PolicyDelete
		migratedAlone := s.Origin == ByMigratedPlugin || s.Origin == StaticMigrated || s.Origin == ByExternal // the provisioner adds External itself
		nobody := s.Origin == ByMissingPlugin                                                                 // could reclaim it
		if lost && !migratedAlone && !nobody && !s.Deleting {
			t.Errorf("%+v ends without a finalizer: %+v", s, after)
		}
	}
}

func TestInTreeIsAddedOnlyWhereItCanComeOff(t *testing.T) {
	for s := range marksStates {
		if DecideMarks(s).AddInTree && (s.Origin != ByPlugin || s.Deleting || !s.Honor || s.Policy != storage.PolicyDelete) {
			t.Errorf("InTree added in %+v", s)
		}
	}
}
