package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
)

// released is the state of an in-tree volume whose claim is gone; change may alter it.
func released(policy Policy, change ...func(*InTreeState)) InTreeState {
	s := InTreeState{Honor: true, Plugin: Deletes, Recycles: true, Policy: policy, Phase: Released, Claim: ClaimGone}
	for _, f := range change {
		f(&s)
	}
	return s
}

func confirmed(s *InTreeState)  { s.Confirmed = true }
func protected(s *InTreeState)  { s.Protected = true }
func deleting(s *InTreeState)   { s.Deleting = true }
func deleted(s *InTreeState)    { s.Deleted = true }
func failed(s *InTreeState)     { s.Phase = Failed }
func off(s *InTreeState)        { s.Honor = false }
func shared(s *InTreeState)     { s.Shared = true }
func used(s *InTreeState)       { s.Used = true }
func dynamic(s *InTreeState)    { s.Dynamic = true }
func recycled(s *InTreeState)   { s.Recycled = true }
func unrecycled(s *InTreeState) { s.Recycles = false }
func bound(s *InTreeState)      { s.Phase = Bound }

func plugin(p Plugin) func(*InTreeState) { return func(s *InTreeState) { s.Plugin = p } }
func claim(c Claim) func(*InTreeState)   { return func(s *InTreeState) { s.Claim = c } }
func pod(r Recycler) func(*InTreeState)  { return func(s *InTreeState) { s.Recycler = r } }

func TestDecideInTree(t *testing.T) {
	for name, tc := range map[string]struct {
		state InTreeState
		want  Decision
	}{
		"the claim is gone: first a live look":                          {released(Delete, protected), Decision{Confirm, ClaimReleased}},
		"confirmed: the plugin deletes":                                 {released(Delete, protected, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"Failed counts as Released":                                     {released(Delete, protected, failed, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"a static volume is deleted too":                                {released(Delete, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the volume was deleted first: the plugin deletes all the same": {released(Delete, protected, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the same without the finalizer: pv-protection holds it":        {released(Delete, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the plugin is done: the object goes":                           {released(Delete, protected, deleted), Decision{DeleteObject, AlreadyReclaimed}},
		"the plugin is done: the finalizer goes":                        {released(Delete, protected, deleting, deleted), Decision{Unprotect, AlreadyReclaimed}},
		"the plugin is done and no finalizer is left":                   {released(Delete, deleting, deleted, confirmed), Decision{Wait, AlreadyReclaimed}},
		"off: a volume deleted before its claim leaks as today":         {released(Delete, off, deleting, confirmed), Decision{Wait, GateOff}},
		"off: a released volume is reclaimed":                           {released(Delete, off, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"no plugin: Failed":                                             {released(Delete, plugin(Missing)), Decision{Fail, NoPlugin}},
		"the claim is back with the same UID: the plugin is not called": {released(Delete, claim(ClaimHolds), confirmed), Decision{Wait, StillClaimed}},
		"the volume turns out to be bound: the plugin is not called":    {released(Delete, bound, confirmed), Decision{Wait, StillClaimed}},
		"deleted before it was ever bound: nobody has used it":          {released(Delete, claim(ClaimUnbound), deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
		"an unbound claim may still get a volume that stays":            {released(Delete, claim(ClaimUnbound), confirmed), Decision{Wait, StillClaimed}},
		"a volume that is recycled is not taken from its claim":         {released(Recycle, claim(ClaimUnbound), deleting, confirmed), Decision{Wait, StillClaimed}},
		"the claim took another volume, this one was made for it":       {released(Delete, dynamic, claim(ClaimElsewhere), confirmed), Decision{DeleteVolume, ClaimReleased}},
		"the claim took another volume, this one is a person's":         {released(Delete, claim(ClaimElsewhere), confirmed), Decision{Wait, GivenBack}},
		"two volumes at one place: the other's data is kept":            {released(Delete, shared, protected, confirmed), Decision{Wait, HandleShared}},
		"an external name, CSI or a migrated volume: the provisioner's": {released(Delete, plugin(External), confirmed), Decision{Wait, NotOurs}},
		"a migrated volume: the driver does everything":                 {released(Recycle, plugin(Migrated), confirmed), Decision{Wait, NotOurs}},
		"Retain keeps the data":                                         {released(Retain, confirmed), Decision{Wait, PolicyKeepsData}},
		"an unknown policy: Failed, never deleted":                      {released(OtherPolicy, confirmed), Decision{Fail, UnknownPolicy}},

		"Recycle: first a live look":                                {released(Recycle), Decision{Confirm, ClaimReleased}},
		"Recycle, confirmed and no pod: it is started":              {released(Recycle, confirmed), Decision{StartRecycler, ClaimReleased}},
		"Recycle, the pod runs: its own event tells more":           {released(Recycle, pod(RecyclerRuns)), Decision{Wait, RecyclerBusy}},
		"Recycle, the pod turns out to run":                         {released(Recycle, confirmed, pod(RecyclerRuns)), Decision{Wait, RecyclerBusy}},
		"Recycle, an old pod is going":                              {released(Recycle, pod(RecyclerGoing)), Decision{Wait, RecyclerBusy}},
		"Recycle, somebody else's pod: removed, never believed":     {released(Recycle, confirmed, pod(ForeignRecycler)), Decision{RemoveRecycler, RecyclerUnknown}},
		"Recycle, a cache says that the pod succeeded":              {released(Recycle, pod(RecyclerSucceeded)), Decision{Confirm, ClaimReleased}},
		"Recycle, the pod succeeded":                                {released(Recycle, confirmed, pod(RecyclerSucceeded)), Decision{FinishRecycling, RecyclerDone}},
		"Recycle, the pod failed":                                   {released(Recycle, confirmed, pod(RecyclerFailed)), Decision{RetryRecycling, RecyclerBroken}},
		"Recycle, a Failed volume is tried again":                   {released(Recycle, failed, confirmed), Decision{StartRecycler, ClaimReleased}},
		"recycled: a live look, for the claim may be back":          {released(Recycle, recycled, pod(RecyclerGoing)), Decision{Confirm, ClaimReleased}},
		"recycled and confirmed: it can be claimed again":           {released(Recycle, recycled, confirmed, pod(RecyclerGoing)), Decision{MakeAvailable, AlreadyReclaimed}},
		"nobody recycles a CSI volume: Failed":                      {released(Recycle, plugin(External), unrecycled), Decision{Fail, NoPlugin}},
		"Recycle, a pod uses the volume":                            {released(Recycle, used), Decision{Wait, VolumeUsed}},
		"Recycle, another volume at the same place":                 {released(Recycle, shared), Decision{Wait, HandleShared}},
		"Recycle, the object is going":                              {released(Recycle, deleting, confirmed), Decision{Wait, VolumeGoing}},
		"the policy turned to Retain while the pod ran":             {released(Retain, pod(RecyclerSucceeded)), Decision{RemoveRecycler, RecyclerLeftOver}},
		"the policy turned to Retain: the pod that runs is stopped": {released(Retain, pod(RecyclerRuns)), Decision{RemoveRecycler, RecyclerLeftOver}},
		"a pod that is stopped already is not stopped again":        {released(Retain, pod(RecyclerGoing)), Decision{Wait, PolicyKeepsData}},
		"somebody else's pod is left alone under Retain":            {released(Retain, pod(ForeignRecycler)), Decision{Wait, PolicyKeepsData}},
		"the object is going and its pod runs: left to finish":      {released(Recycle, deleting, pod(RecyclerRuns)), Decision{Wait, VolumeGoing}},
		"the object is going and its pod has finished":              {released(Recycle, deleting, pod(RecyclerFailed)), Decision{RemoveRecycler, RecyclerLeftOver}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideInTree(tc.state); got != tc.want {
				t.Errorf("DecideInTree(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestThePluginIsCalledOnlyInAConfirmedReleasedState(t *testing.T) {
	policy := map[Action]Policy{DeleteVolume: Delete, StartRecycler: Recycle, FinishRecycling: Recycle, MakeAvailable: Recycle}
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
		neverBound := s.Claim == ClaimUnbound && s.Deleting && action == DeleteVolume
		mine := s.Claim == ClaimGone || neverBound || s.Claim == ClaimElsewhere && s.Dynamic && s.Policy == Delete
		if !s.Confirmed || s.Policy != needed || foreign || going || !mine || s.Phase != Released && s.Phase != Failed {
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
		over := s.Phase == Released || s.Phase == Failed
		reclaimable := over && s.Deleting && s.Protected && s.Plugin != External && s.Plugin != Migrated && s.Claim == ClaimGone && s.Policy == Delete && s.Honor
		if d := DecideInTree(s); reclaimable && d.Action == Wait && d.Reason != HandleShared {
			t.Errorf("stuck: %+v, %v", s, d)
		}
	}
}

func TestARecycledVolumeIsNeverStuck(t *testing.T) {
	for s := range inTreeStates {
		over := s.Phase == Released || s.Phase == Failed
		recyclable := over && s.Policy == Recycle && s.Plugin != Migrated && s.Claim == ClaimGone && !s.Deleting
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
		"a plugin that can delete, policy Delete":                                       {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete}, Marks{AddInTree: true}},
		"the same, marked already":                                                      {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, InTree: true}, Marks{}},
		"the same, being deleted: the server would refuse":                              {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, Deleting: true}, Marks{}},
		"a name that no plugin deletes for: nobody could remove it":                     {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: Delete}, Marks{}},
		"migration switched off: hand-over in one patch":                                {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, External: true, Migrated: MigratedRight}, Marks{AddInTree: true, RemoveExternal: true, ClearMigrated: true}},
		"a migrated plugin: hand-over the other way":                                    {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: Delete, InTree: true, External: true}, Marks{RemoveInTree: true, SetMigrated: true}},
		"a migrated plugin without the finalizer External":                              {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: Delete, InTree: true, Migrated: MigratedRight}, Marks{RemoveInTree: true}},
		"a migrated plugin whose annotation names another driver":                       {MarksState{Honor: true, Origin: ByMigratedPlugin, Policy: Retain, Migrated: MigratedWrong}, Marks{SetMigrated: true}},
		"an external name: External is not ours to touch":                               {MarksState{Honor: true, Origin: ByExternal, Policy: Delete, External: true}, Marks{}},
		"a static volume of a migrated plugin: the driver's":                            {MarksState{Honor: true, Origin: StaticMigrated, Policy: Delete}, Marks{SetMigrated: true}},
		"migration off, being deleted already: External stays until the plugin is done": {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, External: true, Deleting: true}, Marks{}},
		"migration off, both finalizers":                                                {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, External: true, InTree: true, Deleting: true}, Marks{RemoveExternal: true}},
		"migration off, Retain: nobody else would take External off":                    {MarksState{Honor: true, Origin: ByPlugin, Policy: Retain, External: true, Migrated: MigratedRight}, Marks{RemoveExternal: true, ClearMigrated: true}},
		"nobody claimed it and it is going: no finalizer holds it":                      {MarksState{Honor: true, Origin: ByPlugin, Policy: Delete, InTree: true, External: true, Deleting: true, Unclaimed: true}, Marks{RemoveInTree: true, RemoveExternal: true}},
		"a finalizer for which the plugin is missing is removed":                        {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: Delete, InTree: true}, Marks{RemoveInTree: true}},
		"it is removed from a volume that is being deleted, too":                        {MarksState{Honor: true, Origin: ByMissingPlugin, Policy: Delete, InTree: true, Deleting: true}, Marks{RemoveInTree: true}},
		"a static in-tree volume":                                                       {MarksState{Honor: true, Origin: Static, Policy: Delete}, Marks{}},
		"Retain loses the finalizer":                                                    {MarksState{Honor: true, Origin: ByPlugin, Policy: Retain, InTree: true}, Marks{RemoveInTree: true}},
		"Recycle loses the finalizer":                                                   {MarksState{Honor: true, Origin: ByPlugin, Policy: Recycle, InTree: true}, Marks{RemoveInTree: true}},
		"Retain is provisioned without":                                                 {MarksState{Honor: true, Origin: ByPlugin, Policy: Retain}, Marks{}},
		"off: any volume with the finalizer loses it":                                   {MarksState{Origin: ByPlugin, Policy: Delete, InTree: true}, Marks{RemoveInTree: true}},
		"off: a static volume with the finalizer loses it":                              {MarksState{Origin: Static, Policy: Delete, InTree: true}, Marks{RemoveInTree: true}},
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
		nobody := s.Origin == ByMissingPlugin                                                                 // could reclaim it
		if lost && !migratedAlone && !nobody && !s.Deleting {
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
