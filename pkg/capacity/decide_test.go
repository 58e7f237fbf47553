package capacity_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

// everyState yields every value of State.
func everyState(yield func(capacity.State) bool) {
	for bits := range 16 {
		for _, count := range []capacity.Count{capacity.None, capacity.One, capacity.Several} {
			s := capacity.State{Wanted: bits&1 != 0, Known: bits&2 != 0, Same: bits&4 != 0, Owned: bits&8 != 0, Objects: count}
			if !yield(s) {
				return
			}
		}
	}
}

func TestDecideOnEveryState(t *testing.T) {
	for s := range everyState {
		action := capacity.Decide(s)
		done := !s.Wanted && s.Objects == capacity.None ||
			s.Wanted && s.Objects == capacity.One && s.Known && s.Same && s.Owned
		if done != (action == capacity.Wait) {
			t.Errorf("Decide(%+v) = %v, want Wait exactly if nothing is left to do", s, action)
		}
		if !s.Wanted && action != capacity.Wait && action != capacity.Remove {
			t.Errorf("Decide(%+v) = %v for an item that is not wanted", s, action)
		}
		if s.Wanted && action == capacity.Remove {
			t.Errorf("Decide(%+v) = Remove for a wanted item", s)
		}
		if (action == capacity.Create || action == capacity.Update) && !s.Known {
			t.Errorf("Decide(%+v) = %v without an answer of the driver", s, action)
		}
		if action == capacity.Create && s.Objects != capacity.None || action == capacity.Update && s.Objects != capacity.One {
			t.Errorf("Decide(%+v) = %v with this number of objects", s, action)
		}
	}
}

// Five successful actions at most lead from every state to Wait.
func TestEveryStateReachesWait(t *testing.T) {
	for start := range everyState {
		s := start
		for steps := 0; capacity.Decide(s) != capacity.Wait; steps++ {
			if steps > 4 {
				t.Fatalf("state %+v does not reach Wait", start)
			}
			s = after(s, capacity.Decide(s))
		}
	}
}

// after returns the state after a successful action.
func after(s capacity.State, action capacity.Action) capacity.State {
	switch action {
	case capacity.Ask:
		s.Known = true
	case capacity.Create:
		s.Objects, s.Same, s.Owned = capacity.One, true, true
	case capacity.Update:
		s.Same, s.Owned = true, true
	case capacity.Remove:
		s.Objects = capacity.None
	case capacity.RemoveExtra:
		s.Objects = capacity.One
	case capacity.Wait:
	}
	return s
}

func TestEnumValuesHaveDistinctNames(t *testing.T) {
	names := map[string]bool{}
	for action := capacity.Wait; action <= capacity.RemoveExtra; action++ {
		names[action.String()] = true
	}
	for count := capacity.None; count <= capacity.Several; count++ {
		names[count.String()] = true
	}
	if len(names) != 9 || capacity.Action(99).String() != "Action(99)" || capacity.Count(99).String() != "Count(99)" {
		t.Errorf("names: %v", names)
	}
}
