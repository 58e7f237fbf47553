package fate_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/teardown/fate"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Never, Bound)
	enumtest.ExpectNames(t, Keep, DeleteClaim)
}

// deletable is a dynamic volume with the policy Delete, with this change.
func deletable(change func(*State)) State {
	s := State{Deletable: true, Provisioned: true, Claim: Bound, Held: true}
	change(&s)
	return s
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"#01 bound, dynamic, Delete":          {deletable(func(*State) {}), Decision{DeleteClaim, PolicyDelete}},
		"#12 without the finalizer":           {deletable(func(s *State) { s.Held = false }), Decision{DeleteClaim, PolicyDelete}},
		"#02 Retain":                          {deletable(func(s *State) { s.Deletable = false }), Decision{Mark, PolicyRetain}},
		"#03 static":                          {deletable(func(s *State) { s.Provisioned = false }), Decision{Mark, Static}},
		"#04 label":                           {deletable(func(s *State) { s.Preserved = true }), Decision{Mark, Preserved}},
		"#04 label and policy Retain":         {deletable(func(s *State) { s.Preserved, s.Deletable = true, false }), Decision{Mark, Preserved}},
		"#04 marked":                          {deletable(func(s *State) { s.Preserved, s.Deletable, s.Marked = true, false, true }), Decision{Keep, Preserved}},
		"#05 shared":                          {deletable(func(s *State) { s.Shared = true }), Decision{Mark, HandleShared}},
		"#05 shared and marked":               {deletable(func(s *State) { s.Shared, s.Preserved, s.Marked = true, true, true }), Decision{Keep, HandleShared}},
		"#05 shared and released":             {deletable(func(s *State) { s.Shared, s.Claim = true, Released }), Decision{Mark, HandleShared}},
		"#07 Delete again on a kept volume":   {deletable(func(s *State) { s.Preserved = true }), Decision{Mark, Preserved}},
		"#08 below a kept volume":             {deletable(func(s *State) { s.Below = true }), Decision{Mark, HoldsKeptVolumes}},
		"#11 released":                        {deletable(func(s *State) { s.Claim = Released }), Decision{Await, Releasing}},
		"#11 available":                       {deletable(func(s *State) { s.Claim = Never }), Decision{Mark, Unbound}},
		"#11 the claim is Lost":               {deletable(func(s *State) { s.Claim = Lost }), Decision{Mark, Unbound}},
		"#02 released, Retain":                {deletable(func(s *State) { s.Claim, s.Deletable = Released, false }), Decision{Mark, PolicyRetain}},
		"#04 released, labeled while it goes": {deletable(func(s *State) { s.Claim, s.Preserved = Released, true }), Decision{Mark, Preserved}},
		"nothing is known":                    {State{}, Decision{Mark, PolicyRetain}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// states calls yield for every state.
func states(yield func(State)) {
	if fields := reflect.TypeFor[State]().NumField(); fields != 1+7 {
		panic("a field of State is not enumerated")
	}
	for relation := range Bound + 1 {
		for bits := range 1 << 7 {
			has := func(bit int) bool { return bits>>bit&1 == 1 }
			yield(State{Preserved: has(0), Deletable: has(1), Provisioned: has(2), Shared: has(3), Below: has(4), Claim: relation,
				Marked: has(5), Held: has(6)})
		}
	}
}

// Every guard stands alone: any of them keeps the disk whatever the others say.
func TestDiskOfKeptVolumeIsNeverDeleted(t *testing.T) {
	states(func(s State) {
		kept := s.Preserved || !s.Deletable || !s.Provisioned || s.Shared || s.Below || s.Claim == Never || s.Claim == Lost
		if d := Decide(s); d.Kept() != kept {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

func TestClaimIsDeletedOnlyOfBoundVolume(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		if d.Action == DeleteClaim && s.Claim != Bound || d.Action == Await && s.Claim != Released {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

func TestKeptVolumeIsMarkedOnce(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); d.Kept() && (d.Action == Mark) == s.Marked {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

// The finalizer of the provisioner is evidence, and decides nothing.
func TestEvidenceChangesNoDecision(t *testing.T) {
	states(func(s State) {
		other := s
		other.Held = !s.Held
		if Decide(s) != Decide(other) || s.Evident() != s.Held {
			t.Errorf("Decide(%+v) = %v, Decide(%+v) = %v", s, Decide(s), other, Decide(other))
		}
	})
}

func TestEveryDecisionIsKnown(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); d.Reason == "" {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
		enumtest.ExpectKnown(t, Decide(s).Action)
	})
}
