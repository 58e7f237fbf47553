package claim_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/teardown/claim"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Pending, Lost)
	enumtest.ExpectNames(t, NoVolume, Confirmed)
	enumtest.ExpectNames(t, Unrequested, Unanswered)
	enumtest.ExpectNames(t, Leave, Delete)
}

// pending is a claim without a volume, whose wave has begun.
func pending(request Request) State { return State{Request: request, Open: true} }

// bound is a claim whose wave has begun, with this change.
func bound(volume Volume, change func(*State)) State {
	s := State{Phase: Bound, Volume: volume, Open: true}
	change(&s)
	return s
}

func unchanged(*State) {}

func preserved(request Request) State { return State{Request: request, Open: true, Preserved: true} }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"#01 bound, not read":          {bound(Deletable, unchanged), Decision{Confirm, VolumeDeletable}},
		"#01 bound, read":              {bound(Confirmed, unchanged), Decision{Delete, VolumeDeletable}},
		"#01 pods use it":              {bound(Confirmed, func(s *State) { s.Used = true }), Decision{Wait, PodsUseIt}},
		"wave not begun":               {bound(Confirmed, func(s *State) { s.Open = false }), Decision{Wait, WaveClosed}},
		"volume not seen":              {bound(NoVolume, unchanged), Decision{Wait, VolumeUnseen}},
		"#02 volume kept":              {bound(Kept, unchanged), Decision{Leave, VolumeKept}},
		"#06 volume kept, not marked":  {bound(Unmarked, unchanged), Decision{Wait, KeepingVolume}},
		"#04 label, volume not seen":   {bound(NoVolume, func(s *State) { s.Preserved = true }), Decision{Leave, Preserved}},
		"#11 lost":                     {State{Phase: Lost, Open: true}, Decision{Leave, LostClaim}},
		"#14 ephemeral":                {bound(Confirmed, func(s *State) { s.Ephemeral = true }), Decision{Wait, GoesWithPod}},
		"#14 ephemeral, kept":          {bound(Kept, func(s *State) { s.Ephemeral = true }), Decision{Leave, VolumeKept}},
		"#20 unrequested":              {pending(Unrequested), Decision{Delete, ClaimUnrequested}},
		"#20 a pod waits for it":       {State{Open: true, Used: true}, Decision{Wait, PodsUseIt}},
		"#21 requested":                {pending(Open), Decision{Wait, ProvisioningRequested}},
		"#21 failed for good":          {pending(Failed), Decision{Delete, ProvisioningFailed}},
		"#21 no answer for 2 minutes":  {pending(Unanswered), Decision{Delete, OutcomeUnknown}},
		"its volume is being bound":    {State{Volume: Confirmed, Open: true}, Decision{Wait, ProvisioningRequested}},
		"#04 label, unrequested":       {preserved(Unrequested), Decision{Leave, Preserved}},
		"#04 label, requested":         {preserved(Open), Decision{Wait, ProvisioningRequested}},
		"#04 label, no answer":         {preserved(Unanswered), Decision{Leave, OutcomeUnknown}},
		"#04 label, bound":             {bound(NoVolume, func(s *State) { s.Preserved, s.Request = true, Open }), Decision{Leave, Preserved}},
		"#04 label, bound at last":     {bound(NoVolume, func(s *State) { s.Preserved, s.Request = true, Unanswered }), Decision{Leave, Preserved}},
		"#22 deleted":                  {bound(Confirmed, func(s *State) { s.Deleting = true }), Decision{Wait, Terminating}},
		"#22 deleted, its volume kept": {bound(Kept, func(s *State) { s.Deleting = true }), Decision{Wait, Terminating}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestDecidePod(t *testing.T) {
	for name, tc := range map[string]struct {
		state PodState
		want  Decision
	}{
		"#24 a pod":                          {PodState{Open: true}, Decision{Delete, UsesClaims}},
		"#22 a deleted pod":                  {PodState{Open: true, Deleting: true}, Decision{Wait, PodTerminating}},
		"#22 a mirror pod":                   {PodState{Open: true, Mirror: true}, Decision{Leave, MirrorPod}},
		"#14 a kept volume is not marked":    {PodState{Open: true, Unmarked: true}, Decision{Wait, KeepingVolume}},
		"#25 wave not begun":                 {PodState{}, Decision{Wait, WaveClosed}},
		"#21 an ephemeral claim's volume":    {PodState{Open: true, Requested: true}, Decision{Wait, ProvisioningRequested}},
		"#06 an ephemeral claim is not read": {PodState{Open: true, Unread: true}, Decision{Confirm, UsesClaims}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecidePod(tc.state); got != tc.want {
				t.Errorf("DecidePod(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// states calls yield for every state of a claim.
func states(yield func(State)) {
	if fields := reflect.TypeFor[State]().NumField(); fields != 3+5 {
		panic("a field of State is not enumerated")
	}
	for phase := range Lost + 1 {
		for volume := range Confirmed + 1 {
			for request := range Unanswered + 1 {
				for bits := range 1 << 5 {
					has := func(bit int) bool { return bits>>bit&1 == 1 }
					yield(State{Deleting: has(0), Phase: phase, Volume: volume, Request: request, Preserved: has(1),
						Ephemeral: has(2), Open: has(3), Used: has(4)})
				}
			}
		}
	}
}

// podStates calls yield for every state of a pod.
func podStates(yield func(PodState)) {
	if fields := reflect.TypeFor[PodState]().NumField(); fields != 6 {
		panic("a field of PodState is not enumerated")
	}
	for bits := range 1 << 6 {
		has := func(bit int) bool { return bits>>bit&1 == 1 }
		yield(PodState{Deleting: has(0), Mirror: has(1), Unmarked: has(2), Requested: has(3), Unread: has(4), Open: has(5)})
	}
}

func TestClaimOfKeptVolumeIsNeverDeleted(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		if (d.Action == Delete || d.Action == Confirm) && (s.Volume == Kept || s.Volume == Unmarked || s.Preserved || s.Phase == Lost) {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

func TestBoundClaimIsDeletedOnlyAfterLiveRead(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); d.Action == Delete && s.Phase == Bound && s.Volume != Confirmed {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

// A claim that goes during CreateVolume leaves a disk without a PersistentVolume.
func TestRequestedClaimIsAwaited(t *testing.T) {
	states(func(s State) {
		open := s.Phase == Pending && (s.Request == Open || s.Volume != NoVolume)
		if d := Decide(s); d.Action == Delete && open || d.Action == Leave && s.Phase == Pending && s.Request == Open && s.Volume == NoVolume {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
	podStates(func(s PodState) {
		if d := DecidePod(s); d.Action == Delete && (s.Requested || s.Unread || s.Unmarked) {
			t.Errorf("DecidePod(%+v) = %v", s, d)
		}
	})
}

func TestPodsGoFirstAndWavesInOrder(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); (d.Action == Delete || d.Action == Confirm) && (s.Used || !s.Open || s.Ephemeral || s.Deleting) {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
	podStates(func(s PodState) {
		if d := DecidePod(s); (d.Action == Delete || d.Action == Confirm) && (!s.Open || s.Mirror || s.Deleting) {
			t.Errorf("DecidePod(%+v) = %v", s, d)
		}
	})
}

// Each claim of a volume to delete has a next step, or names what it waits for.
func TestNoClaimIsForgotten(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		stays := s.Volume == Kept || s.Preserved || s.Phase == Lost
		if d.Action == Leave && (!stays || s.Deleting) || d.Reason == "" {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
		waits := map[Reason]bool{
			Terminating: s.Deleting, KeepingVolume: s.Volume == Unmarked, GoesWithPod: s.Ephemeral, WaveClosed: !s.Open, PodsUseIt: s.Used,
			VolumeUnseen: s.Volume == NoVolume, ProvisioningRequested: s.Request == Open || s.Volume != NoVolume,
		}
		if d.Action == Wait && !waits[d.Reason] {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
	podStates(func(s PodState) {
		if d := DecidePod(s); d.Action == Leave && !s.Mirror || d.Reason == "" {
			t.Errorf("DecidePod(%+v) = %v", s, d)
		}
	})
}

func TestEveryDecisionIsKnown(t *testing.T) {
	states(func(s State) { enumtest.ExpectKnown(t, Decide(s).Action) })
	podStates(func(s PodState) { enumtest.ExpectKnown(t, DecidePod(s).Action) })
}
