package disruption_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/termination/disruption"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, NoCause, Expired)
	enumtest.ExpectNames(t, Unknown, Free)
	enumtest.ExpectNames(t, Wait, Delete)
}

// expired is a served node that may go, with this change.
func expired(change func(*State)) State {
	s := State{Cause: Expired, Served: true, Room: true}
	change(&s)
	return s
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"a claim as it should be":         {expired(func(s *State) { s.Cause = NoCause }), Decision{Wait, NothingToDo}},
		"#07 a node that is not ours":     {expired(func(s *State) { s.Served = false }), Decision{Wait, NotServed}},
		"deleted already":                 {expired(func(s *State) { s.Deleted = true }), Decision{Wait, Terminating}},
		"do-not-disrupt":                  {expired(func(s *State) { s.Kept, s.Limited = true, true }), Decision{Wait, DoNotDisrupt}},
		"#62 another node terminates":     {expired(func(s *State) { s.Room, s.Limited = false, true }), Decision{Wait, OthersTerminate}},
		"#62 T set, pods block":           {expired(func(s *State) { s.Limited, s.Pods = true, Blocked }), Decision{Delete, Replaced}},
		"#62 T set, pods unknown":         {expired(func(s *State) { s.Limited = true }), Decision{Delete, Replaced}},
		"#62 no T, pods unknown":          {expired(func(*State) {}), Decision{Look, PodsUnknown}},
		"#62 no T, a pod blocks":          {expired(func(s *State) { s.Pods = Blocked }), Decision{Look, PodsBlock}},
		"#62 no T, a pod blocks, no room": {expired(func(s *State) { s.Pods, s.Room = Blocked, false }), Decision{Look, PodsBlock}},
		"#62 no T, no pod blocks":         {expired(func(s *State) { s.Pods = Free }), Decision{Delete, Replaced}},
		"#62 drifted, no T, pods free":    {State{Cause: Drifted, Pods: Free, Served: true, Room: true}, Decision{Delete, Replaced}},
	} {
		if got := Decide(tc.state); got != tc.want {
			t.Errorf("%s: Decide(%+v) = %v, want %v", name, tc.state, got, tc.want)
		}
	}
}

// states yields every state.
func states(yield func(State)) {
	for cause := NoCause; cause <= Expired; cause++ {
		for pods := Unknown; pods <= Free; pods++ {
			for bits := range 1 << 5 {
				has := func(bit int) bool { return bits>>bit&1 == 1 }
				yield(State{cause, pods, has(0), has(1), has(2), has(3), has(4)})
			}
		}
	}
}

func TestNodeIsDeletedOnlyWithCauseAndRoom(t *testing.T) {
	states(func(s State) {
		if Decide(s).Action == Delete && (s.Cause == NoCause || !s.Room || !s.Served || s.Deleted || s.Kept) {
			t.Fatalf("deleted: %+v", s)
		}
	})
}

func TestWithoutPeriodNoBlockingPodIsDrained(t *testing.T) {
	states(func(s State) {
		if Decide(s).Action == Delete && !s.Limited && s.Pods != Free {
			t.Fatalf("deleted: %+v", s)
		}
	})
}

// A node with a T ends though its pods block, as the deadline promises.
func TestWithPeriodPodsAreNotAsked(t *testing.T) {
	states(func(s State) {
		other := s
		other.Pods = Free
		if s.Limited && Decide(s) != Decide(other) {
			t.Fatalf("%v: %+v", Decide(s), s)
		}
	})
}

// Pods cost a watch, which begins only if nothing else keeps the node, and lasts while a pod blocks.
func TestPodsAreWatchedOnlyIfTheyDecide(t *testing.T) {
	states(func(s State) {
		free := s
		free.Pods = Free
		free.Room = s.Room || s.Pods == Blocked
		if (Decide(s).Action == Look) != (s.Pods != Free && !s.Limited && Decide(free).Action == Delete) {
			t.Fatalf("%v: %+v", Decide(s), s)
		}
	})
}
