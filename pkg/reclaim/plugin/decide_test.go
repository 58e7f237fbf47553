package plugin_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	. "github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

// released returns the state of an in-tree volume whose claim is gone, with the changes.
func released(policy Policy, change ...func(*State)) State {
	s := State{Honor: true, Reclaimer: ReclaimerPlugin, CanRecycle: true, Policy: policy, Phase: PhaseReleased,
		Claim: ClaimGone}
	for _, f := range change {
		f(&s)
	}
	return s
}

func confirmed(s *State)  { s.Confirmed = true }
func protected(s *State)  { s.Protected = true }
func deleting(s *State)   { s.Deleting = true }
func deleted(s *State)    { s.Deleted = true }
func failed(s *State)     { s.Phase = PhaseFailed }
func off(s *State)        { s.Honor = false }
func shared(s *State)     { s.Shared = true }
func used(s *State)       { s.Used = true }
func dynamic(s *State)    { s.Dynamic = true }
func recycled(s *State)   { s.Recycled = true }
func unrecycled(s *State) { s.CanRecycle = false }
func bound(s *State)      { s.Phase = PhaseBound }

func by(r Reclaimer) func(*State)        { return func(s *State) { s.Reclaimer = r } }
func claim(c ClaimRelation) func(*State) { return func(s *State) { s.Claim = c } }
func pod(r Recycler) func(*State)        { return func(s *State) { s.Recycler = r } }

var decideCases = map[string]struct {
	state State
	want  Decision
}{
	"released volume is confirmed first":               {released(PolicyDelete, protected), Decision{Confirm, ClaimReleased}},
	"confirmed released volume is deleted":             {released(PolicyDelete, protected, confirmed), Decision{DeleteVolume, ClaimReleased}},
	"confirmed Failed volume is deleted":               {released(PolicyDelete, protected, failed, confirmed), Decision{DeleteVolume, ClaimReleased}},
	"static volume is deleted":                         {released(PolicyDelete, confirmed), Decision{DeleteVolume, ClaimReleased}},
	"volume deleted before its claim is deleted":       {released(PolicyDelete, protected, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
	"volume without finalizer is deleted":              {released(PolicyDelete, deleting, confirmed), Decision{DeleteVolume, ClaimReleased}},
	"object is deleted after the volume":               {released(PolicyDelete, protected, deleted), Decision{DeleteObject, AlreadyReclaimed}},
	"finalizer is removed after the object's deletion": {released(PolicyDelete, protected, deleting, deleted), Decision{RemoveFinalizer, AlreadyReclaimed}},
	"reclaimed volume without finalizer waits":         {released(PolicyDelete, deleting, deleted, confirmed), Decision{Wait, AlreadyReclaimed}},
	"gate off, volume deleted before its claim leaks":  {released(PolicyDelete, off, deleting, confirmed), Decision{Wait, GateOff}},
	"gate off, released volume is deleted":             {released(PolicyDelete, off, confirmed), Decision{DeleteVolume, ClaimReleased}},
	"volume without plugin becomes Failed":             {released(PolicyDelete, by(ReclaimerMissing)), Decision{SetPhaseFailed, NoPlugin}},
	"volume of an existing claim is kept":              {released(PolicyDelete, claim(ClaimBound), confirmed), Decision{Wait, StillClaimed}},
	"bound volume is kept":                             {released(PolicyDelete, bound, confirmed), Decision{Wait, StillClaimed}},
	"deleted volume that was never bound is deleted": {released(PolicyDelete, claim(ClaimUnbound), dynamic, deleting,
		confirmed), Decision{DeleteVolume, ClaimReleased}},
	"volume of an unbound claim is kept": {released(PolicyDelete, claim(ClaimUnbound), dynamic, confirmed), Decision{Wait, StillClaimed}},
	"unbound volume is not recycled": {released(PolicyRecycle, claim(ClaimUnbound), dynamic, deleting,
		confirmed), Decision{Wait, StillClaimed}},
	"dynamic volume of claim bound elsewhere is deleted": {released(PolicyDelete, dynamic, claim(ClaimElsewhere),
		confirmed), Decision{DeleteVolume, ClaimReleased}},
	"static volume of claim bound elsewhere is kept": {released(PolicyDelete, claim(ClaimElsewhere), confirmed), Decision{Wait, DataKept}},
	"volume with shared data is not deleted":         {released(PolicyDelete, shared, protected, confirmed), Decision{Wait, HandleShared}},
	"external volume waits for the provisioner":      {released(PolicyDelete, by(ReclaimerExternal), confirmed), Decision{Wait, ReclaimedByOther}},
	"migrated volume waits for the driver":           {released(PolicyRecycle, by(ReclaimerMigrated), confirmed), Decision{Wait, ReclaimedByOther}},
	"Retain volume is kept":                          {released(PolicyRetain, confirmed), Decision{Wait, PolicyKeepsData}},
	"volume with unknown policy becomes Failed":      {released(PolicyUnknown, confirmed), Decision{SetPhaseFailed, UnknownPolicy}},

	"recycled volume is confirmed first":              {released(PolicyRecycle), Decision{Confirm, ClaimReleased}},
	"recycler pod is created":                         {released(PolicyRecycle, confirmed), Decision{CreateRecycler, ClaimReleased}},
	"volume waits for running recycler pod":           {released(PolicyRecycle, pod(RecyclerRunning)), Decision{Wait, RecyclerPodUnfinished}},
	"confirmed volume waits for running recycler pod": {released(PolicyRecycle, confirmed, pod(RecyclerRunning)), Decision{Wait, RecyclerPodUnfinished}},
	"volume waits for recycler pod being deleted":     {released(PolicyRecycle, pod(RecyclerDeleting)), Decision{Wait, RecyclerPodUnfinished}},
	"foreign recycler pod is deleted":                 {released(PolicyRecycle, confirmed, pod(RecyclerForeign)), Decision{DeleteRecycler, RecyclerPodForeign}},
	"success of recycler pod is confirmed first":      {released(PolicyRecycle, pod(RecyclerSucceeded)), Decision{Confirm, ClaimReleased}},
	"recycling finishes after the pod's success": {released(PolicyRecycle, confirmed, pod(RecyclerSucceeded)),
		Decision{FinishRecycling, RecyclerPodSucceeded}},
	"recycling is retried after the pod's failure": {released(PolicyRecycle, confirmed, pod(RecyclerFailed)), Decision{RetryRecycling, RecyclerPodFailed}},
	"missing rights to recycle are reported": {released(PolicyRecycle, confirmed, pod(RecyclerForbidden)),
		Decision{ReportForbidden, RecyclerPodForbidden}},
	"Failed volume is recycled again":    {released(PolicyRecycle, failed, confirmed), Decision{CreateRecycler, ClaimReleased}},
	"recycled volume is confirmed again": {released(PolicyRecycle, recycled, pod(RecyclerDeleting)), Decision{Confirm, ClaimReleased}},
	"recycled volume loses its claimRef": {released(PolicyRecycle, recycled, confirmed,
		pod(RecyclerDeleting)), Decision{ClearClaimRef, AlreadyReclaimed}},
	"recycled volume with shared data is confirmed":   {released(PolicyRecycle, recycled, shared), Decision{Confirm, ClaimReleased}},
	"recycled volume of a new pod is confirmed":       {released(PolicyRecycle, recycled, used), Decision{Confirm, ClaimReleased}},
	"external volume with Recycle becomes Failed":     {released(PolicyRecycle, by(ReclaimerExternal), unrecycled), Decision{SetPhaseFailed, NoPlugin}},
	"used volume is not recycled":                     {released(PolicyRecycle, used), Decision{Wait, VolumeUsed}},
	"volume with shared data is not recycled":         {released(PolicyRecycle, shared), Decision{Wait, HandleShared}},
	"running recycler pod of shared data is deleted":  {released(PolicyRecycle, shared, pod(RecyclerRunning)), Decision{DeleteRecycler, RecyclerPodUnneeded}},
	"deleted volume is not recycled":                  {released(PolicyRecycle, deleting, confirmed), Decision{Wait, VolumeDeleting}},
	"Retain deletes a succeeded recycler pod":         {released(PolicyRetain, pod(RecyclerSucceeded)), Decision{DeleteRecycler, RecyclerPodUnneeded}},
	"Retain deletes a running recycler pod":           {released(PolicyRetain, pod(RecyclerRunning)), Decision{DeleteRecycler, RecyclerPodUnneeded}},
	"Retain waits for recycler pod being deleted":     {released(PolicyRetain, pod(RecyclerDeleting)), Decision{Wait, PolicyKeepsData}},
	"recycler pod of other data is deleted":           {released(PolicyRecycle, confirmed, pod(RecyclerOutdated)), Decision{DeleteRecycler, RecyclerPodForeign}},
	"Retain ends a pod for other data":                {released(PolicyRetain, pod(RecyclerOutdated)), Decision{DeleteRecycler, RecyclerPodUnneeded}},
	"Retain leaves a foreign pod alone":               {released(PolicyRetain, pod(RecyclerForeign)), Decision{Wait, PolicyKeepsData}},
	"deleted volume keeps its recycler pod":           {released(PolicyRecycle, deleting, pod(RecyclerRunning)), Decision{Wait, VolumeDeleting}},
	"deleted volume's failed recycler pod is deleted": {released(PolicyRecycle, deleting, pod(RecyclerFailed)), Decision{DeleteRecycler, RecyclerPodUnneeded}},
}

func TestDecide(t *testing.T) {
	for name, tc := range decideCases {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestPluginIsCalledOnlyInConfirmedReleasedState(t *testing.T) {
	policy := map[Action]Policy{DeleteVolume: PolicyDelete, CreateRecycler: PolicyRecycle, FinishRecycling: PolicyRecycle,
		ClearClaimRef: PolicyRecycle}
	called := map[Action]int{}
	for s := range states {
		action := Decide(s).Action
		needed, destroys := policy[action]
		if !destroys {
			continue
		}
		called[action]++
		foreign := s.Reclaimer == ReclaimerMigrated || action == DeleteVolume && s.Reclaimer != ReclaimerPlugin ||
			action != DeleteVolume && !s.CanRecycle
		going := s.Deleting && (action != DeleteVolume || !s.Honor)
		neverBound := s.Claim == ClaimUnbound && s.Dynamic && s.Deleting && action == DeleteVolume
		mine := s.Claim == ClaimGone || neverBound || s.Claim == ClaimElsewhere && s.Dynamic && s.Policy == PolicyDelete
		if !s.Confirmed || s.Policy != needed || foreign || going || !mine || s.Phase != PhaseReleased &&
			s.Phase != PhaseFailed {
			t.Errorf("%v in %+v", action, s)
		}
		if (s.Shared || s.Used && action != DeleteVolume) && action != ClearClaimRef || s.Deleted && action == DeleteVolume {
			t.Errorf("%v in %+v", action, s)
		}
		if action == ClearClaimRef && !s.Recycled || action == FinishRecycling && s.Recycler != RecyclerSucceeded {
			t.Errorf("volume is available before it was recycled: %+v", s)
		}
	}
	if len(called) != len(policy) {
		t.Errorf("only %v occur: the test proves nothing", called)
	}
}

func TestNoVolumeIsStuckTerminating(t *testing.T) {
	for s := range states {
		released := s.Phase == PhaseReleased || s.Phase == PhaseFailed
		reclaimable := released && s.Deleting && s.Protected && s.Reclaimer != ReclaimerExternal &&
			s.Reclaimer != ReclaimerMigrated && s.Claim == ClaimGone && s.Policy == PolicyDelete && s.Honor
		if d := Decide(s); reclaimable && d.Action == Wait && d.Reason != HandleShared {
			t.Errorf("stuck: %+v, %v", s, d)
		}
	}
}

func TestNoRecycledVolumeIsStuck(t *testing.T) {
	for s := range states {
		released := s.Phase == PhaseReleased || s.Phase == PhaseFailed
		recyclable := released && s.Policy == PolicyRecycle && s.Reclaimer != ReclaimerMigrated && s.Claim == ClaimGone &&
			!s.Deleting
		waits := s.Shared || s.Used || s.Recycler == RecyclerRunning || s.Recycler == RecyclerDeleting
		if d := Decide(s); recyclable && !waits && d.Action == Wait {
			t.Errorf("stuck: %+v, %v", s, d)
		}
		if d := Decide(s); d.Action == Confirm && s.Confirmed {
			t.Errorf("confirmed twice: %+v", s)
		}
	}
}

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, Wait, ClearClaimRef)
	enumtest.ExpectNames(t, RecyclerNone, RecyclerForbidden)
	enumtest.ExpectNames(t, OriginStatic, OriginStaticMigrated)
	enumtest.ExpectNames(t, MigratedToNone, MigratedToOther)
	enumtest.ExpectNames(t, ReclaimerMigrated, ReclaimerPlugin)
}

// A volume inside another need not wait for it only if the data of both is to go, and then the
// outer volume waits.
func TestVolumeAwaitsOthersOnlyToBeReclaimed(t *testing.T) {
	awaits := 0
	for s := range states {
		alone := s
		alone.Shared, alone.Used, alone.Confirmed, alone.Recycler = false, false, true, RecyclerNone
		action := Decide(alone).Action
		reclaimed := action == DeleteVolume || action == CreateRecycler
		if got := s.AwaitsOthers(); got != reclaimed && !s.Recycled || got && !reclaimed {
			t.Errorf("AwaitsOthers() = %v, but without other volumes the action is %v: %+v", got, action, s)
		}
		if !s.AwaitsOthers() {
			continue
		}
		awaits++
		s.Shared = true
		if waits := Decide(s); waits.Reason != HandleShared && waits.Action != DeleteRecycler {
			t.Errorf("%v in %+v", waits, s)
		}
	}
	if awaits == 0 {
		t.Error("no volume awaits others: the test proves nothing")
	}
}

func TestAwaitsOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  bool
	}{
		"volume to be deleted":               {released(PolicyDelete), true},
		"volume to be recycled":              {released(PolicyRecycle), true},
		"recycled volume":                    {released(PolicyRecycle, recycled), false},
		"Retain volume":                      {released(PolicyRetain), false},
		"bound volume":                       {released(PolicyDelete, bound), false},
		"volume without plugin":              {released(PolicyDelete, by(ReclaimerMissing)), false},
		"volume of the provisioner":          {released(PolicyDelete, by(ReclaimerExternal)), false},
		"volume whose data is gone":          {released(PolicyDelete, deleted), false},
		"volume of a claim that is not gone": {released(PolicyDelete, claim(ClaimBound)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.AwaitsOthers(); got != tc.want {
				t.Errorf("AwaitsOthers() = %v, want %v", got, tc.want)
			}
		})
	}
}

// The volume gets no new claim before the pod for the data of its former claim has ended: the
// pod must be deleted.
func TestOutdatedRecyclerPodOfUnclaimedVolumeIsDeleted(t *testing.T) {
	for s := range states {
		neverBound := s.Claim == ClaimUnbound && s.Dynamic && s.Deleting
		if s.Recycler != RecyclerOutdated || neverBound || s.Claim == ClaimGone || s.Claim == ClaimElsewhere {
			continue
		}
		if d := Decide(s); d.Action != DeleteRecycler {
			t.Errorf("%v in %+v", d, s)
		}
	}
}
