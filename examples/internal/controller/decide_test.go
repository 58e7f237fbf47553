package controller

import (
	"testing"

	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"new object gets the finalizer":                     {State{}, Decision{AddFinalizer, GuestNeedsFinalizer}},
		"live object is read before its guest starts":       {State{Finalizer: true, Guest: Off}, Decision{Confirm, GuestOff}},
		"guest of a live object is started":                 {State{Finalizer: true, Guest: Off, Confirmed: true}, Decision{Start, GuestOff}},
		"guest of a live object runs on":                    {State{Finalizer: true, Guest: Running}, Decision{Wait, GuestRuns}},
		"finalizer is added again":                          {State{Guest: Running}, Decision{AddFinalizer, GuestNeedsFinalizer}},
		"finalizer without record starts no guest":          {State{Finalizer: true, Confirmed: true}, Decision{Report, RecordMissing}},
		"finalizer without record stays":                    {State{Deletion: Forced, Finalizer: true, Confirmed: true}, Decision{Report, RecordMissing}},
		"guest is asked once":                               {State{InGrace, true, Running, NotAsked, false}, Decision{RequestShutdown, DeadlineAhead}},
		"guest that was asked has time":                     {State{InGrace, true, Running, Asked, false}, Decision{Wait, DeadlineAhead}},
		"moved deadline is reported":                        {State{InGrace, true, Running, AskedForOther, false}, Decision{NoteDeadline, DeadlineMoved}},
		"object is read before power off":                   {State{Passed, true, Running, Asked, false}, Decision{Confirm, DeadlinePassed}},
		"guest is off at the deadline":                      {State{Passed, true, Running, Asked, true}, Decision{PowerOff, DeadlinePassed}},
		"deadline passed while the controller was away":     {State{Passed, true, Running, NotAsked, true}, Decision{PowerOff, DeadlinePassed}},
		"forced deletion asks nobody":                       {State{Forced, true, Running, NotAsked, true}, Decision{PowerOff, ForceRequested}},
		"guest ends although the finalizer was removed":     {State{Passed, false, Running, Asked, true}, Decision{PowerOff, DeadlinePassed}},
		"object is read before the finalizer is removed":    {State{InGrace, true, Off, Asked, false}, Decision{Confirm, GuestOff}},
		"object goes once its guest has ended":              {State{InGrace, true, Off, Asked, true}, Decision{RemoveFinalizer, GuestOff}},
		"finalizers of others are waited for":               {State{Forced, false, Off, NotAsked, false}, Decision{Wait, GuestOff}},
		"finalizer stays while the guest may live":          {State{Forced, true, Unknown, NotAsked, true}, Decision{Retry, GuestUnknown}},
		"record goes after the object":                      {State{Gone, false, Off, Asked, true}, Decision{Forget, ObjectGone}},
		"object that the cache does not have is read":       {State{Gone, false, Off, Asked, false}, Decision{Confirm, ObjectGone}},
		"guest without object is left to the administrator": {State{Gone, false, Running, NotAsked, true}, Decision{Report, GuestLeft}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// allStates calls visit with each state.
func allStates(visit func(State)) {
	for deletion := NotDeleted; deletion <= Gone; deletion++ {
		for guest := NoRecord; guest <= Unknown; guest++ {
			for request := NotAsked; request <= Asked; request++ {
				for _, finalizer := range []bool{false, true} {
					for _, confirmed := range []bool{false, true} {
						visit(State{deletion, finalizer, guest, request, confirmed})
					}
				}
			}
		}
	}
}

func TestEveryStateKeepsPromises(t *testing.T) {
	states := 0
	allStates(func(s State) {
		states++
		enumtest.ExpectKnown(t, s)
		got := Decide(s)
		enumtest.ExpectKnown(t, got)
		broken := map[string]bool{
			"a guest is ended without its user":         got.Action == PowerOff && s.Deletion != Passed && s.Deletion != Forced,
			"something is done because of a cache":      consequential(got.Action) && !s.Confirmed,
			"the finalizer goes before the guest":       got.Action == RemoveFinalizer && s.Guest != Off,
			"the record goes before the guest":          got.Action == Forget && (s.Guest != Off || s.Deletion != Gone),
			"a second guest starts":                     got.Action == Start && s.Guest != Off,
			"a guest starts for an object that can go":  got.Action == Start && (s.Deletion != NotDeleted || !s.Finalizer),
			"a guest is asked twice":                    got.Action == RequestShutdown && s.Request != NotAsked,
			"a guest of a forced deletion has time":     s.Deletion == Forced && s.Guest == Running && got.Action == Wait,
			"a guest has time after its deadline":       s.Deletion == Passed && s.Guest == Running && got.Action == Wait,
			"an object without a guest stays":           s.deleted() && s.Guest == Off && s.Finalizer && got.Action == Wait,
			"a guest in its grace period knows nothing": s.Deletion == InGrace && s.Guest == Running && got.Action == Wait && s.Request != Asked,
			"an object is read again and again":         got.Action == Confirm && s.Confirmed,
			"a finalizer is added to a deleted object":  got.Action == AddFinalizer && s.Deletion != NotDeleted,
		}
		for promise, is := range broken {
			if is {
				t.Errorf("%s: Decide(%+v) = %v", promise, s, got)
			}
		}
	})
	if states != 240 {
		t.Errorf("%d states, want 240", states)
	}
}

// consequential reports whether the action cannot be undone.
func consequential(a Action) bool {
	return a == PowerOff || a == RemoveFinalizer || a == Start || a == Forget
}

func (s State) deleted() bool {
	return s.Deletion == InGrace || s.Deletion == Passed || s.Deletion == Forced
}

func TestNamesOfValues(t *testing.T) {
	enumtest.ExpectNames(t, NotDeleted, Gone)
	enumtest.ExpectNames(t, NoRecord, Unknown)
	enumtest.ExpectNames(t, NotAsked, Asked)
	enumtest.ExpectNames(t, Wait, Retry)
}
