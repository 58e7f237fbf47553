package garbage_test

import (
	"iter"
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Wait, RemoveOrphan)
	enumtest.ExpectNames(t, NoOwner, DependentsGone)
	enumtest.ExpectNames(t, AwaitOutside, ReleaseMembers)
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"an object without owners stays":                           {State{}, Decision{Wait, NoOwner}},
		"an object with a live owner stays":                        {State{Live: true}, Decision{Wait, OwnerLives}},
		"an object whose owners are absent is deleted":             {State{Absent: true}, Decision{DeleteBackground, OwnersAbsent}},
		"its dependents do not matter then":                        {State{Absent: true, Dependents: true}, Decision{DeleteBackground, OwnersAbsent}},
		"a finalizer orphan selects the policy":                    {State{Absent: true, Orphan: true}, Decision{DeleteOrphan, OwnersAbsent}},
		"a finalizer foregroundDeletion selects the policy":        {State{Absent: true, Foreground: true}, Decision{DeleteForeground, OwnersAbsent}},
		"references to absent owners go if another owner lives":    {State{Absent: true, Live: true}, Decision{RemoveReferences, OwnerLives}},
		"references to waiting owners go if another owner lives":   {State{Waiting: true, Live: true}, Decision{RemoveReferences, OwnerLives}},
		"an unresolvable owner keeps the object":                   {State{Absent: true, Unresolvable: true}, Decision{Wait, OwnerUnresolvable}},
		"an unverified owner is read first":                        {State{Absent: true, Unverified: true}, Decision{VerifyOwners, OwnerUnverified}},
		"a dependent with dependents is deleted in the foreground": {State{Waiting: true, Dependents: true}, Decision{DeleteForeground, OwnersWait}},
		"a dependent is judged childless after the barrier":        {State{Waiting: true}, Decision{AwaitBarrier, KindsUnseen}},
		"an owner without a verdict is read":                       {State{Unverified: true}, Decision{VerifyOwners, OwnerUnverified}},
		"a childless dependent is deleted in the background":       {State{Waiting: true, Seen: true}, Decision{DeleteBackground, OwnersWait}},
		"an orphaned object loses the reference":                   {State{Orphaning: true}, Decision{RemoveReferences, OwnerOrphans}},
		"an orphaned object that is being deleted too":             {State{Orphaning: true, Deleting: true}, Decision{RemoveReferences, OwnerOrphans}},
		"a deletion that was sent is not repeated":                 {State{Absent: true, Sent: true}, Decision{Wait, DeleteSent}},
		"a foreground deletion has the barrier begin at once": {State{Deleting: true, Foreground: true,
			Blocking: true, Dependents: true}, Decision{AwaitBarrier, KindsUnseen}},
		"a foreground deletion waits for blocking dependents": {State{Deleting: true, Foreground: true,
			Blocking: true, Dependents: true, Seen: true}, Decision{Wait, DependentsBlock}},
		"a foreground deletion waits for the barrier": {State{Deleting: true, Foreground: true}, Decision{AwaitBarrier, KindsUnseen}},
		"a foreground deletion ends in spite of dependents": {State{Deleting: true, Foreground: true, Seen: true,
			Dependents: true}, Decision{RemoveForeground, DependentsGone}},
		"an orphaning deletion waits for the barrier": {State{Deleting: true, Orphan: true}, Decision{AwaitBarrier, KindsUnseen}},
		"an orphaning deletion waits for dependents that do not block": {State{Deleting: true, Orphan: true, Seen: true,
			Dependents: true}, Decision{Wait, DependentsRefer}},
		"an orphaning deletion ends":                               {State{Deleting: true, Orphan: true, Seen: true}, Decision{RemoveOrphan, DependentsGone}},
		"other finalizers are none of its business":                {State{Deleting: true}, Decision{Wait, Terminating}},
		"an object of unresolvable owners alone stays":             {State{Unresolvable: true}, Decision{Wait, OwnerUnresolvable}},
		"owners of an object that is being deleted are read first": {State{Deleting: true, Unverified: true}, Decision{VerifyOwners, OwnerUnverified}},
		"an object that a list lacks is read":                      {State{Missing: true, Absent: true}, Decision{VerifyObject, MissingInList}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestDeletedOnlyWithoutOwner(t *testing.T) {
	for s := range states[State]() {
		if Decide(s).Action.Deletes() && (s.Live || s.Orphaning || s.Unresolvable || s.Unverified || s.Missing ||
			s.Deleting || !s.Absent && !s.Waiting) {
			t.Errorf("deleted: %+v", s)
		}
	}
}

func TestReferencesAreRemovedOnlyForReason(t *testing.T) {
	for s := range states[State]() {
		reason := s.Orphaning || s.Live && (s.Absent || s.Waiting)
		if Decide(s).Action == RemoveReferences && (s.Unverified || !reason) {
			t.Errorf("references removed: %+v", s)
		}
	}
}

func TestFinalizerIsRemovedAfterBarrierOnly(t *testing.T) {
	for s := range states[State]() {
		switch Decide(s).Action {
		case RemoveForeground:
			if !s.Seen || s.Blocking || !s.Foreground || !s.Deleting || s.Orphan {
				t.Errorf("foregroundDeletion removed: %+v", s)
			}
		case RemoveOrphan:
			if !s.Seen || s.Dependents || !s.Orphan || !s.Deleting {
				t.Errorf("orphan removed: %+v", s)
			}
		default:
		}
	}
}

func TestChildlessOnlyAfterBarrier(t *testing.T) {
	for s := range states[State]() {
		if s.Waiting && !s.Seen && Decide(s).Action == DeleteBackground {
			t.Errorf("judged childless: %+v", s)
		}
	}
}

// Nothing remains all of whose owners are absent, and no owner waits without a blocker.
func TestNothingIsStuck(t *testing.T) {
	for s := range states[State]() {
		garbage := (s.Absent || s.Waiting) && !s.Live && !s.Unresolvable && !s.Sent && !s.Deleting
		ended := s.Deleting && (s.Orphan && !s.Dependents || s.Foreground && !s.Orphan && !s.Blocking)
		if (garbage || ended) && Decide(s).Action == Wait {
			t.Errorf("stuck: %+v", s)
		}
	}
}

func TestDecideComponent(t *testing.T) {
	for want, state := range map[ComponentAction]ComponentState{
		AwaitOutside:   {BlockedOutside: true, Seen: true},
		AwaitMembers:   {},
		ReadMembers:    {Seen: true},
		Recompute:      {Seen: true, Read: true, Changed: true},
		ReleaseMembers: {Seen: true, Read: true},
	} {
		if got := DecideComponent(state); got != want {
			t.Errorf("DecideComponent(%+v) = %v, want %v", state, got, want)
		}
	}
}

func TestActionsThatDelete(t *testing.T) {
	for action := Wait; action <= RemoveOrphan; action++ {
		if want := action >= DeleteBackground && action <= DeleteOrphan; action.Deletes() != want {
			t.Errorf("%v deletes: %v", action, action.Deletes())
		}
	}
}

func TestComponentIsReleasedOnlyIfUnchanged(t *testing.T) {
	for s := range states[ComponentState]() {
		want := !s.BlockedOutside && s.Seen && s.Read && !s.Changed
		if released := DecideComponent(s) == ReleaseMembers; released != want {
			t.Errorf("DecideComponent(%+v) = %v", s, DecideComponent(s))
		}
	}
}

// states iterates over every value of a struct of booleans.
func states[T any]() iter.Seq[T] {
	return func(yield func(T) bool) {
		var state T
		fields := reflect.ValueOf(&state).Elem()
		for bits := range 1 << fields.NumField() {
			for i := range fields.NumField() {
				fields.Field(i).SetBool(bits>>i&1 == 1)
			}
			if !yield(state) {
				return
			}
		}
	}
}
