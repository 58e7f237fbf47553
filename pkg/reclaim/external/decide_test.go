package external_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	. "github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	. "github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

var decideCases = map[string]struct {
	state State
	want  Decision
}{
	"volume of another driver is left alone": {State{Honor: true, Policy: PolicyDelete, Phase: PhaseReleased,
		Claim: ClaimGone, Protected: true, Confirmed: true}, Decision{Wait, ReclaimedByOther}},

	"bound volume gets the finalizer": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseBound, Claim: ClaimUnread}, Decision{AddFinalizer, PolicyMayDelete}},
	"bound volume deleted without finalizer is pending": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseBound, Claim: ClaimUnread, Deleting: true}, Decision{SetStatusPending, TooLateToProtect}},
	"pending volume waits for its claim": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseBound, Claim: ClaimUnread, Deleting: true, Status: reclaim.StatusPending},
		Decision{Wait, TooLateToProtect}},
	"Retain volume never becomes pending": {State{Honor: true, Owned: true, Policy: PolicyRetain,
		Phase: PhaseBound, Claim: ClaimUnread, Deleting: true}, Decision{Wait, PolicyKeepsData}},
	"pending volume is confirmed when released": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimUnread, Deleting: true, Status: reclaim.StatusPending},
		Decision{Confirm, ClaimReleased}},
	"pending volume is deleted once confirmed": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Deleting: true, Status: reclaim.StatusPending, Confirmed: true},
		Decision{DeleteVolume, ClaimReleased}},
	"pending volume is done after deletion": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Deleting: true, Status: reclaim.StatusPending, Deleted: true},
		Decision{SetStatusDone, AlreadyReclaimed}},
	"done volume is not deleted again": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Deleting: true, Status: reclaim.StatusDone, Confirmed: true},
		Decision{Wait, AlreadyReclaimed}},
	"gate off, pending status is removed": {State{Owned: true, Policy: PolicyDelete, Phase: PhaseBound,
		Deleting: true, Status: reclaim.StatusPending}, Decision{RemoveStatus, GateOff}},
	"Retain volume gets no finalizer": {State{Honor: true, Owned: true, Policy: PolicyRetain,
		Phase: PhaseBound, Claim: ClaimUnread}, Decision{Wait, PolicyKeepsData}},
	"Available volume gets no finalizer": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseAvailable}, Decision{Wait, NeverClaimed}},
	"Pending volume gets no finalizer": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhasePending}, Decision{Wait, NeverClaimed}},
	"Released volume without finalizer is confirmed": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimUnread}, Decision{Confirm, ClaimReleased}},
	"Failed volume without finalizer is confirmed": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseFailed, Claim: ClaimUnread}, Decision{Confirm, ClaimReleased}},
	"protected bound volume is left alone": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseBound, Claim: ClaimUnread, Protected: true}, Decision{Wait, StillClaimed}},
	"protected bound volume waits while deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseBound, Claim: ClaimUnread, Protected: true, Deleting: true}, Decision{Wait, StillClaimed}},
	"Retain volume loses the finalizer": {State{Honor: true, Owned: true, Policy: PolicyRetain,
		Phase: PhaseBound, Protected: true}, Decision{RemoveFinalizer, PolicyKeepsData}},
	"Recycle volume loses the finalizer": {State{Honor: true, Owned: true, Policy: PolicyRecycle,
		Phase: PhaseReleased, Protected: true}, Decision{RemoveFinalizer, PolicyKeepsData}},
	"released Retain volume is never deleted": {State{Honor: true, Owned: true, Policy: PolicyRetain,
		Phase: PhaseReleased, Claim: ClaimGone, Confirmed: true}, Decision{Wait, PolicyKeepsData}},
	"unknown policy changes nothing": {State{Honor: true, Owned: true, Phase: PhaseReleased,
		Claim: ClaimGone, Protected: true, Confirmed: true}, Decision{Wait, UnknownPolicy}},
	"new protected volume keeps the finalizer": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhasePending, Protected: true}, Decision{Wait, NeverClaimed}},
	"deleted volume of a claim keeps the finalizer": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhasePending, Protected: true, Deleting: true, Claim: ClaimUnread}, Decision{Wait, NeverClaimed}},
	"deleted Available volume loses the finalizer": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseAvailable, Protected: true, Deleting: true}, Decision{RemoveFinalizer, NeverClaimed}},

	"released volume is confirmed first": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimUnread, Protected: true}, Decision{Confirm, ClaimReleased}},
	"confirmed released volume is deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Protected: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
	"volume deleted before its claim is deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Protected: true, Deleting: true, Confirmed: true},
		Decision{DeleteVolume, ClaimReleased}},
	"volume of claim bound elsewhere is deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimElsewhere, Dynamic: true, Protected: true, Confirmed: true},
		Decision{DeleteVolume, ClaimReleased}},
	"static volume of claim bound elsewhere keeps its data": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimElsewhere, Protected: true, Confirmed: true}, Decision{Wait, StillClaimed}},
	"deleted static volume, claim bound elsewhere": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseFailed, Claim: ClaimElsewhere, Protected: true, Deleting: true, Confirmed: true},
		Decision{Wait, StillClaimed}},
	"confirmed Failed volume is deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseFailed, Claim: ClaimGone, Deleting: true, Protected: true, Confirmed: true},
		Decision{DeleteVolume, ClaimReleased}},
	"volume of an existing claim is kept": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimBound, Protected: true, Confirmed: true}, Decision{Wait, StillClaimed}},
	"deleted volume that was never bound is deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimUnbound, Dynamic: true, Protected: true, Deleting: true, Confirmed: true},
		Decision{DeleteVolume, ClaimReleased}},
	"deleted static volume that was never bound is kept": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimUnbound, Protected: true, Deleting: true, Confirmed: true},
		Decision{Wait, StillClaimed}},
	"volume of an unbound claim is kept": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimUnbound, Dynamic: true, Protected: true, Confirmed: true},
		Decision{Wait, StillClaimed}},
	"object is deleted after the volume": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Protected: true, Deleted: true, Confirmed: true},
		Decision{DeleteObject, AlreadyReclaimed}},
	"finalizer is removed after the object's deletion": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Protected: true, Deleting: true, Deleted: true},
		Decision{RemoveFinalizer, AlreadyReclaimed}},
	"deleted volume without finalizer is already reclaimed": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Deleting: true, Confirmed: true}, Decision{Wait, AlreadyReclaimed}},
	"object of an Available volume goes with its disk": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseAvailable, Protected: true, Deleted: true}, Decision{DeleteObject, AlreadyReclaimed}},
	"object of a Pending volume goes with its disk": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhasePending, Claim: ClaimUnread, Protected: true, Deleted: true}, Decision{DeleteObject, AlreadyReclaimed}},
	"finalizer of an Available volume goes with its disk": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseAvailable, Claim: ClaimUnread, Protected: true, Deleting: true, Deleted: true},
		Decision{RemoveFinalizer, AlreadyReclaimed}},
	"bound volume stays although its disk is deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseBound, Claim: ClaimUnread, Protected: true, Deleted: true}, Decision{Wait, StillClaimed}},
	"attached volume is not deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Protected: true, Attached: true, Confirmed: true},
		Decision{Wait, StillAttached}},
	"volume with a shared handle is not deleted": {State{Honor: true, Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Protected: true, Shared: true, Confirmed: true},
		Decision{Wait, HandleShared}},
	"gate off, finalizer is removed": {State{Owned: true, Policy: PolicyDelete, Phase: PhaseBound,
		Protected: true}, Decision{RemoveFinalizer, GateOff}},
	"gate off, released volume is deleted": {State{Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
	"gate off, volume deleted before its claim leaks": {State{Owned: true, Policy: PolicyDelete,
		Phase: PhaseReleased, Claim: ClaimGone, Deleting: true, Confirmed: true}, Decision{Wait, GateOff}},
	"gate off, bound volume gets no finalizer": {State{Owned: true, Policy: PolicyDelete, Phase: PhaseBound,
		Claim: ClaimUnread}, Decision{Wait, StillClaimed}},
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

func TestIsUnprotected(t *testing.T) {
	unprotected := State{Owned: true, Policy: PolicyDelete, Phase: PhaseBound}
	for name, tc := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"bound volume without finalizer": {func(*State) {}, true},
		"volume of another driver":       {func(s *State) { s.Owned = false }, false},
		"Retain volume":                  {func(s *State) { s.Policy = PolicyRetain }, false},
		"released volume":                {func(s *State) { s.Phase = PhaseReleased }, false},
		"volume with the finalizer":      {func(s *State) { s.Protected = true }, false},
		"bound volume, gate on":          {func(s *State) { s.Honor = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := unprotected
			tc.change(&s)
			if got := IsUnprotected(s); got != tc.want {
				t.Errorf("IsUnprotected(%+v) = %v, want %v", s, got, tc.want)
			}
		})
	}
}

func TestDataIsDeletedOnlyInConfirmedReleasedState(t *testing.T) {
	deleted := 0
	for s := range states {
		if Decide(s).Action != DeleteVolume {
			continue
		}
		deleted++
		released := s.Claim == ClaimGone || s.Claim == ClaimElsewhere || s.Claim == ClaimUnbound && s.Deleting && s.Dynamic
		safe := s.Owned && s.Confirmed && s.Policy == PolicyDelete && released &&
			(s.Phase == PhaseReleased || s.Phase == PhaseFailed) && !s.Attached && !s.Shared && !s.Deleted
		if !safe {
			t.Errorf("data is deleted in %+v", s)
		}
	}
	if deleted == 0 {
		t.Error("no state deletes data: the test proves nothing")
	}
}

// Otherwise the next claim gets a volume without a disk.
func TestVolumeWithDeletedDiskIsNotOffered(t *testing.T) {
	for s := range states {
		mayAct := s.Owned && s.Policy == PolicyDelete && s.Phase != PhaseBound && s.Honor
		if mayAct && s.Deleted && !s.Deleting && Decide(s) != (Decision{DeleteObject, AlreadyReclaimed}) {
			t.Errorf("%v in %+v", Decide(s), s)
		}
	}
}

func TestNoVolumeIsStuckTerminating(t *testing.T) {
	for s := range states {
		reclaimable := s.Owned && s.Deleting && s.Protected && s.Phase != PhaseBound && s.Policy != PolicyUnknown
		used := s.Claim == ClaimBound || s.Claim == ClaimLost || s.Claim == ClaimUnbound && !s.Dynamic ||
			s.Claim == ClaimUnread && s.Confirmed
		used = used || s.Claim == ClaimElsewhere && !s.Dynamic // until its claimRef is cleared
		// The pv-controller sets the phase first.
		awaitsPhase := (s.Phase == PhasePending || s.Phase == PhaseAvailable) && s.Claim != ClaimNone && !s.Deleted
		awaitsPhase = awaitsPhase || s.Claim == ClaimNone && s.Phase.Released() && s.Confirmed
		if reclaimable && !s.Attached && !s.Shared && !used && !awaitsPhase && Decide(s).Action == Wait {
			t.Errorf("stuck: %+v, %v", s, Decide(s))
		}
	}
}

func TestVolumeWithPendingStatusIsReclaimed(t *testing.T) {
	for s := range states {
		protected := plugin.NeedsProtection(plugin.ProtectionState{
			Claim: s.Claim, Dynamic: s.Dynamic, Honor: true, Reclaimer: plugin.ReclaimerExternal, Policy: s.Policy,
			Phase: s.Phase, Status: s.Status,
		})
		if s.Owned && s.Deleting && protected && s.Phase.Released() && !s.Attached && !s.Shared && Decide(s).Action == Wait {
			t.Errorf("protected for ever: %+v, %v", s, Decide(s))
		}
	}
}

func TestFinalizerIsAddedOnlyToBoundDeleteVolumes(t *testing.T) {
	for s := range states {
		if Decide(s).Action == AddFinalizer && (s.Deleting || s.Protected || !s.Honor || s.Phase != PhaseBound ||
			s.Policy != PolicyDelete) {
			t.Errorf("finalizer added in %+v", s)
		}
	}
}

func TestEveryWriteChangesSomething(t *testing.T) {
	for s := range states {
		useless := false
		switch Decide(s).Action {
		case RemoveFinalizer:
			useless = !s.Protected
		case DeleteObject:
			useless = s.Deleting
		case Confirm:
			useless = s.Confirmed
		case SetStatusPending:
			useless = s.Status != reclaim.StatusNone || !s.Deleting || s.Protected || s.Phase != PhaseBound ||
				s.Policy != PolicyDelete || !s.Honor
		case SetStatusDone:
			useless = s.Status != reclaim.StatusPending || !s.Deleted
		case RemoveStatus:
			useless = s.Status == reclaim.StatusNone || s.Honor
		case Wait, AddFinalizer, DeleteVolume:
		}
		if useless {
			t.Errorf("%v in %+v", Decide(s), s)
		}
	}
}

func TestPolicyChangeMovesFinalizer(t *testing.T) {
	s := State{Honor: true, Owned: true, Phase: PhaseBound, Claim: ClaimUnread, Policy: PolicyDelete, Protected: true}
	for _, change := range []struct {
		policy Policy
		want   Action
	}{{PolicyDelete, Wait}, {PolicyRetain, RemoveFinalizer}, {PolicyRetain, Wait}, {PolicyDelete, AddFinalizer},
		{PolicyDelete, Wait}} {
		s.Policy = change.policy
		action := Decide(s).Action
		if action != change.want {
			t.Fatalf("%+v: %v, want %v", s, action, change.want)
		}
		s.Protected = s.Protected && action != RemoveFinalizer || action == AddFinalizer
	}
}

// states yields every value of State.
func states(yield func(State) bool) {
	for bits := range 1 << 9 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		for policy := PolicyUnknown; policy <= PolicyDelete; policy++ {
			for phase := PhasePending; phase <= PhaseFailed; phase++ {
				for claim := ClaimNone; claim <= ClaimElsewhere; claim++ {
					for status := reclaim.StatusNone; status <= reclaim.StatusDone; status++ {
						s := State{
							Honor: on(0), Owned: on(1), Deleting: on(2), Protected: on(3), Attached: on(4), Shared: on(5),
							Deleted: on(6), Confirmed: on(7), Dynamic: on(8), Policy: policy, Phase: phase, Claim: claim, Status: status,
						}
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, Wait, RemoveStatus)
	enumtest.ExpectNames(t, SecretNone, SecretNamespaceGone)
	enumtest.ExpectNames(t, AwaitSecret, CallWithoutSecret)
}
