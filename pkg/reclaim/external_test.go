package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"a volume of another driver is never touched, finalizer or not": {State{Honor: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Confirmed: true}, Decision{Wait, NotOurs}},

		"a bound volume with policy Delete gets the finalizer":              {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Claim: storage.ClaimUnread}, Decision{Protect, PolicyMayDelete}},
		"a bound volume that is being deleted can no longer get it: marked": {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Claim: storage.ClaimUnread, Deleting: true}, Decision{MarkVolume, TooLateToProtect}},
		"a marked volume waits until its claim is gone":                     {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Claim: storage.ClaimUnread, Deleting: true, Mark: MarkPending}, Decision{Wait, TooLateToProtect}},
		"a marked volume is not marked under Retain":                        {State{Honor: true, Owned: true, Policy: storage.PolicyRetain, Phase: storage.PhaseBound, Claim: storage.ClaimUnread, Deleting: true}, Decision{Wait, PolicyKeepsData}},
		"a marked volume, released: first a live look":                      {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimUnread, Deleting: true, Mark: MarkPending}, Decision{Confirm, ClaimReleased}},
		"a marked volume, released and confirmed: deleted":                  {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Deleting: true, Mark: MarkPending, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"a marked volume that was deleted: recorded":                        {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Deleting: true, Mark: MarkPending, Deleted: true}, Decision{CloseMark, AlreadyReclaimed}},
		"a mark that says done: already reclaimed":                          {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Deleting: true, Mark: MarkDone, Confirmed: true}, Decision{Wait, AlreadyReclaimed}},
		"off: a mark that nobody would answer goes":                         {State{Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Deleting: true, Mark: MarkPending}, Decision{DropMark, GateOff}},
		"a Retain volume is created without, and none appears":              {State{Honor: true, Owned: true, Policy: storage.PolicyRetain, Phase: storage.PhaseBound, Claim: storage.ClaimUnread}, Decision{Wait, PolicyKeepsData}},
		"an Available volume gets none":                                     {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseAvailable}, Decision{Wait, NeverClaimed}},
		"a Pending volume gets none":                                        {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhasePending}, Decision{Wait, NeverClaimed}},
		"a Released volume gets none, it is reclaimed":                      {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimUnread}, Decision{Confirm, ClaimReleased}},
		"a Failed volume gets none, it is reclaimed":                        {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseFailed, Claim: storage.ClaimUnread}, Decision{Confirm, ClaimReleased}},
		"a bound volume with the finalizer is left alone":                   {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Claim: storage.ClaimUnread, Protected: true}, Decision{Wait, StillClaimed}},
		"a bound volume with the finalizer that is deleted waits":           {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Claim: storage.ClaimUnread, Protected: true, Deleting: true}, Decision{Wait, StillClaimed}},
		"Retain with the finalizer loses it":                                {State{Honor: true, Owned: true, Policy: storage.PolicyRetain, Phase: storage.PhaseBound, Protected: true}, Decision{Unprotect, PolicyKeepsData}},
		"Recycle with the finalizer loses it":                               {State{Honor: true, Owned: true, Policy: storage.PolicyRecycle, Phase: storage.PhaseReleased, Protected: true}, Decision{Unprotect, PolicyKeepsData}},
		"a released Retain volume is never deleted":                         {State{Honor: true, Owned: true, Policy: storage.PolicyRetain, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Confirmed: true}, Decision{Wait, PolicyKeepsData}},
		"a policy of tomorrow is not guessed at":                            {State{Honor: true, Owned: true, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Confirmed: true}, Decision{Wait, UnknownPolicy}},
		"an Available volume with the finalizer does not hang when deleted": {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseAvailable, Protected: true, Deleting: true}, Decision{Unprotect, NeverClaimed}},

		"released: first a live look at volume and claim":           {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimUnread, Protected: true}, Decision{Confirm, ClaimReleased}},
		"released and confirmed: the volume is deleted":             {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"the same for a volume deleted before its claim":            {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Deleting: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"the same for a claim that is bound elsewhere":              {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimElsewhere, Protected: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"the same for a Failed volume":                              {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseFailed, Claim: storage.ClaimGone, Deleting: true, Protected: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"a claim that turns out to exist keeps its volume":          {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimBound, Protected: true, Confirmed: true}, Decision{Wait, StillClaimed}},
		"deleted before it was ever bound: nobody has used it":      {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimUnbound, Dynamic: true, Protected: true, Deleting: true, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"deleted before it was ever bound: static, its data stays":  {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimUnbound, Protected: true, Deleting: true, Confirmed: true}, Decision{Wait, StillClaimed}},
		"an unbound claim may still get a volume that stays":        {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimUnbound, Dynamic: true, Protected: true, Confirmed: true}, Decision{Wait, StillClaimed}},
		"deleted in the storage system: then the object":            {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Deleted: true, Confirmed: true}, Decision{DeleteObject, AlreadyReclaimed}},
		"and then the finalizer; the driver is not called again":    {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Deleting: true, Deleted: true}, Decision{Unprotect, AlreadyReclaimed}},
		"released, being deleted, no finalizer: already reclaimed":  {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Deleting: true, Confirmed: true}, Decision{Wait, AlreadyReclaimed}},
		"an attached volume is not deleted":                         {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Attached: true, Confirmed: true}, Decision{Wait, StillAttached}},
		"two volumes that share a handle: the other's data is kept": {State{Honor: true, Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Protected: true, Shared: true, Confirmed: true}, Decision{Wait, HandleShared}},
		"off: any volume of ours with the finalizer loses it":       {State{Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Protected: true}, Decision{Unprotect, GateOff}},
		"off: a released volume is reclaimed as today":              {State{Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Confirmed: true}, Decision{DeleteVolume, ClaimReleased}},
		"off: a volume deleted before its claim leaks as today":     {State{Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseReleased, Claim: storage.ClaimGone, Deleting: true, Confirmed: true}, Decision{Wait, GateOff}},
		"off: a bound volume gets no finalizer":                     {State{Owned: true, Policy: storage.PolicyDelete, Phase: storage.PhaseBound, Claim: storage.ClaimUnread}, Decision{Wait, StillClaimed}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestDataIsDestroyedOnlyInAConfirmedReleasedDeleteState(t *testing.T) {
	destroyed := 0
	for s := range externalStates {
		if Decide(s).Action != DeleteVolume {
			continue
		}
		destroyed++
		safe := s.Owned && s.Confirmed && s.Policy == storage.PolicyDelete && (s.Claim == storage.ClaimGone || s.Claim == storage.ClaimElsewhere || s.Claim == storage.ClaimUnbound && s.Deleting && s.Dynamic) &&
			(s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed) && !s.Attached && !s.Shared && !s.Deleted
		if !safe {
			t.Errorf("data destroyed in %+v", s)
		}
	}
	if destroyed == 0 {
		t.Error("no state destroys data: the test proves nothing")
	}
}

func TestAVolumeIsNeverStuckTerminating(t *testing.T) {
	for s := range externalStates {
		reclaimable := s.Owned && s.Deleting && s.Protected && s.Phase != storage.PhaseBound && s.Policy != storage.PolicyUnknown
		uses := s.Claim == storage.ClaimBound || s.Claim == storage.ClaimLost || s.Claim == storage.ClaimUnbound && !s.Dynamic || s.Claim == storage.ClaimUnread && s.Confirmed
		waitsForSomebody := s.Attached || s.Shared || uses
		// The phase of a volume whose claim has just gone is the pv-controller's to set first.
		awaitsPhase := (s.Phase == storage.PhasePending || s.Phase == storage.PhaseAvailable) && s.Claim != storage.ClaimNone
		awaitsPhase = awaitsPhase || s.Claim == storage.ClaimNone && (s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed) && s.Confirmed
		if reclaimable && !waitsForSomebody && !awaitsPhase && Decide(s).Action == Wait {
			t.Errorf("stuck: %+v, %v", s, Decide(s))
		}
	}
}

func TestAVolumeThatIsHeldByItsMarkIsReclaimed(t *testing.T) {
	for s := range externalStates {
		held := Held(HoldState{Claim: s.Claim, Dynamic: s.Dynamic, Honor: true, Plugin: External, Policy: s.Policy, Phase: s.Phase, Mark: s.Mark})
		over := s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed
		waitsForSomebody := s.Attached || s.Shared
		if s.Owned && s.Deleting && held && over && !waitsForSomebody && Decide(s).Action == Wait {
			t.Errorf("held for ever: %+v, %v", s, Decide(s))
		}
	}
}

func TestAFinalizerIsNeverAddedWhereTheServerOrTheRowsRefuse(t *testing.T) {
	for s := range externalStates {
		if Decide(s).Action == Protect && (s.Deleting || s.Protected || !s.Honor || s.Phase != storage.PhaseBound || s.Policy != storage.PolicyDelete) {
			t.Errorf("finalizer added in %+v", s)
		}
	}
}

func TestEveryWriteChangesSomething(t *testing.T) {
	for s := range externalStates {
		switch d := Decide(s); d.Action {
		case Unprotect:
			if !s.Protected {
				t.Errorf("removes what is not there: %+v", s)
			}
		case DeleteObject:
			if s.Deleting {
				t.Errorf("deletes what is being deleted: %+v", s)
			}
		case Confirm:
			if s.Confirmed {
				t.Errorf("confirms for ever: %+v", s)
			}
		case MarkVolume:
			if s.Mark != NoMark || !s.Deleting || s.Protected || s.Phase != storage.PhaseBound || s.Policy != storage.PolicyDelete || !s.Honor {
				t.Errorf("marked in %+v", s)
			}
		case CloseMark:
			if s.Mark != MarkPending || !s.Deleted {
				t.Errorf("mark closed in %+v", s)
			}
		case DropMark:
			if s.Mark == NoMark || s.Honor {
				t.Errorf("mark dropped in %+v", s)
			}
		case Fail, StartRecycler, RemoveRecycler, FinishRecycling, RetryRecycling, MakeAvailable:
			t.Errorf("%v is not the provisioner's: %+v", d, s)
		case Wait, Protect, DeleteVolume:
		}
	}
}
