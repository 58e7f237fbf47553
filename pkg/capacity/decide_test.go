package capacity_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

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
		settled := !s.Wanted && s.Objects == capacity.None ||
			s.Wanted && s.Objects == capacity.One && s.Known && s.Same && s.Owned
		if settled != (action == capacity.Wait) {
			t.Errorf("Decide(%+v) = %v: waits exactly when all is as it shall be", s, action)
		}
		if !s.Wanted && action != capacity.Wait && action != capacity.Remove {
			t.Errorf("Decide(%+v) = %v: nothing is made, and nobody asked, for what is not wanted", s, action)
		}
		if s.Wanted && action == capacity.Remove {
			t.Errorf("Decide(%+v): what is wanted is removed", s)
		}
		if (action == capacity.Create || action == capacity.Update) && !s.Known {
			t.Errorf("Decide(%+v) = %v without an answer", s, action)
		}
		if action == capacity.Create && s.Objects != capacity.None || action == capacity.Update && s.Objects != capacity.One {
			t.Errorf("Decide(%+v) = %v", s, action)
		}
	}
}

// A world in which every action succeeds settles in a few steps, whatever it was.
func TestEveryStateSettles(t *testing.T) {
	for start := range everyState {
		s := start
		for steps := 0; capacity.Decide(s) != capacity.Wait; steps++ {
			if steps > 4 {
				t.Fatalf("%+v does not settle", start)
			}
			s = after(s, capacity.Decide(s))
		}
	}
}

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
