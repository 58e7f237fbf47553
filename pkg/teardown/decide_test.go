package teardown_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Unread, Present)
	enumtest.ExpectNames(t, NoWord, ValidWord)
	enumtest.ExpectNames(t, Unchecked, Prepared)
	enumtest.ExpectNames(t, NoFreeze, InForce)
	enumtest.ExpectNames(t, Unlisted, Finished)
	enumtest.ExpectNames(t, Wait, Release)
}

// armed is an Alive that may be deleted, with this change.
func armed(change func(*State)) State {
	s := State{Alive: Present, Held: true, Word: ValidWord, Readiness: Prepared, Leading: true, Confirmed: true}
	change(&s)
	return s
}

// deleted is an Alive whose teardown has everything that it needs to start, with this change.
func deleted(change func(*State)) State {
	return armed(func(s *State) {
		s.Deleting, s.Freeze, s.Planned, s.Kept, s.Work = true, InForce, true, true, Ready
		change(s)
	})
}

// started is an Alive whose teardown has begun, with this change.
func started(change func(*State)) State {
	return deleted(func(s *State) {
		s.Started, s.Readiness = true, Unchecked
		change(s)
	})
}

type cases map[string]struct {
	state State
	want  Decision
}

func (c cases) run(t *testing.T) {
	t.Helper()
	for name, tc := range c {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestDecideWithoutDeletion(t *testing.T) {
	cases{
		"#70 another cluster":                 {started(func(s *State) { s.OtherCluster = true }), Decision{NoPhase, End, OtherCluster}},
		"#66 Alive cannot be read":            {started(func(s *State) { s.Alive = Unread }), Decision{NoPhase, Wait, Unreadable}},
		"#57 gone and complete":               {State{Alive: Absent, Recorded: true}, Decision{Complete, End, Completed}},
		"#57 gone and not complete":           {started(func(s *State) { s.Alive = Absent }), Decision{NoPhase, End, NotCompleted}},
		"#50 protected":                       {armed(func(s *State) { s.Protected = true }), Decision{Protected, Wait, IsProtected}},
		"#51 another ID":                      {armed(func(s *State) { s.Word = OtherWord }), Decision{Protected, Wait, NotConfirmed}},
		"#51 no word":                         {armed(func(s *State) { s.Word = NoWord }), Decision{Protected, Wait, NotConfirmed}},
		"#52 armed and left alone":            {armed(func(s *State) { s.Word = ExpiredWord }), Decision{Protected, Wait, Expired}},
		"armed, not checked":                  {armed(func(s *State) { s.Readiness = Unchecked }), Decision{Armed, Wait, Checking}},
		"#33,65,69 armed, not ready":          {armed(func(s *State) { s.Readiness = Unready }), Decision{Armed, Wait, NotReady}},
		"armed, ready":                        {armed(func(*State) {}), Decision{Armed, Wait, AwaitingDeletion}},
		"#63 restored from before the DELETE": {deleted(func(s *State) { s.Deleting, s.Started = false, true }), Decision{Armed, Wait, AwaitingDeletion}},
	}.run(t)
}

func TestDecideStopped(t *testing.T) {
	unfrozen := func(s *State) { s.Freeze = NoFreeze }
	with := func(changes ...func(*State)) func(*State) {
		return func(s *State) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	protected := func(s *State) { s.Protected = true }
	expired := func(s *State) { s.Word = ExpiredWord }
	undefined := func(s *State) { s.Undefined = true }
	unready := func(s *State) { s.Readiness = Unready }
	cases{
		"#54 the CRD is deleted":          {deleted(undefined), Decision{Stopped, Unfreeze, DefinitionDeleted}},
		"#54 deleted, no freeze":          {deleted(with(undefined, unfrozen)), Decision{Stopped, Wait, DefinitionDeleted}},
		"#54 deleted after the start":     {started(undefined), Decision{Stopped, Wait, DefinitionDeleted}},
		"#53 our finalizer is gone":       {started(func(s *State) { s.Held = false }), Decision{Stopped, Wait, FinalizerStripped}},
		"#56 protected before the start":  {deleted(protected), Decision{Stopped, Unfreeze, IsProtected}},
		"#56 protected after the start":   {started(protected), Decision{Stopped, Wait, IsProtected}},
		"#56 protected and expired":       {started(with(expired, protected)), Decision{Stopped, Wait, IsProtected}},
		"#71 aborted, Alive not read yet": {deleted(func(s *State) { s.Protected, s.Confirmed = true, false }), Decision{Stopped, Confirm, IsProtected}},
		"#71 aborted beside another":      {deleted(func(s *State) { s.Protected, s.Leading = true, false }), Decision{Stopped, Wait, IsProtected}},
		"#52 deleted after the deadline":  {deleted(with(expired, unfrozen)), Decision{Stopped, Wait, Expired}},
		"#52 the deadline comes":          {started(expired), Decision{Stopped, Wait, Expired}},
		"#51 another ID after the start":  {started(func(s *State) { s.Word = OtherWord }), Decision{Stopped, Wait, NotConfirmed}},
		"#52 deleted, not ready":          {deleted(with(unready, unfrozen)), Decision{Stopped, Wait, NotReady}},
		"#65 not ready under the freeze":  {deleted(unready), Decision{Stopped, Unfreeze, NotReady}},
		"#64 restored":                    {started(func(s *State) { s.Restored = true }), Decision{Stopped, Wait, Paused}},
		"#64 restored, then expired":      {started(func(s *State) { s.Restored, s.Word = true, ExpiredWord }), Decision{Stopped, Wait, Expired}},
	}.run(t)
}

func TestDecidePreparing(t *testing.T) {
	cases{
		"#61 another runner leads": {deleted(func(s *State) { s.Leading = false }), Decision{Preparing, Wait, NotLeading}},
		"not checked":              {deleted(func(s *State) { s.Readiness = Unchecked }), Decision{Preparing, Wait, Checking}},
		"nothing is read yet":      {deleted(func(s *State) { s.Freeze, s.Confirmed = NoFreeze, false }), Decision{Preparing, Confirm, FreezeMissing}},
		"no freeze":                {deleted(func(s *State) { s.Freeze, s.Planned = NoFreeze, false }), Decision{Preparing, WriteFreeze, FreezeMissing}},
		"#62 not in force":         {deleted(func(s *State) { s.Freeze, s.Planned = Written, false }), Decision{Preparing, Wait, FreezePending}},
		"#66 no plan, not listed":  {deleted(func(s *State) { s.Planned, s.Work = false, Unlisted }), Decision{Preparing, Wait, Unreadable}},
		"no plan":                  {deleted(func(s *State) { s.Planned, s.Kept = false, false }), Decision{Preparing, SavePlan, Planning}},
		"kept and unmarked":        {deleted(func(s *State) { s.Kept = false }), Decision{Preparing, Keep, Keeping}},
		"#66 planned, not listed":  {deleted(func(s *State) { s.Work = Unlisted }), Decision{Preparing, Wait, Unreadable}},
		"prepared":                 {deleted(func(*State) {}), Decision{Preparing, Start, Starting}},
		"prepared, not read":       {deleted(func(s *State) { s.Confirmed = false }), Decision{Preparing, Confirm, Starting}},
		"nothing to delete":        {deleted(func(s *State) { s.Work = Finished }), Decision{Preparing, Start, Starting}},
	}.run(t)
}

func TestDecideTearingDown(t *testing.T) {
	left := func(work Work, recorded bool) State {
		return started(func(s *State) { s.Work, s.Recorded = work, recorded })
	}
	lost := func(readiness Readiness) State {
		return started(func(s *State) { s.Planned, s.Readiness = false, readiness })
	}
	cases{
		"#61 another runner leads":            {started(func(s *State) { s.Leading = false }), Decision{TearingDown, Wait, NotLeading}},
		"#68 the freeze is removed":           {started(func(s *State) { s.Freeze = NoFreeze }), Decision{TearingDown, WriteFreeze, FreezeMissing}},
		"#68 the freeze is written again":     {started(func(s *State) { s.Freeze = Written }), Decision{TearingDown, Wait, FreezePending}},
		"#10 a kept volume appears":           {started(func(s *State) { s.Kept = false }), Decision{TearingDown, Keep, Keeping}},
		"#66 a kept volume, a list is missed": {started(func(s *State) { s.Kept, s.Work = false, Unlisted }), Decision{TearingDown, Keep, Keeping}},
		"the record is lost":                  {lost(Prepared), Decision{TearingDown, SavePlan, Planning}},
		"lost, not checked":                   {lost(Unchecked), Decision{TearingDown, Wait, Checking}},
		"lost, not ready":                     {lost(Unready), Decision{Stopped, Wait, NotReady}},
		"#65 not ready after the start":       {started(func(s *State) { s.Readiness = Unready }), Decision{TearingDown, Delete, Deleting}},
		"#10 work, not read":                  {started(func(s *State) { s.Confirmed = false }), Decision{TearingDown, Confirm, Deleting}},
		"#10 work":                            {left(Ready, false), Decision{TearingDown, Delete, Deleting}},
		"#10 work after the record":           {left(Ready, true), Decision{TearingDown, Record, Deleting}},
		"something remains":                   {left(Awaited, false), Decision{TearingDown, Wait, Remaining}},
		"remains, not read":                   {started(func(s *State) { s.Work, s.Confirmed = Awaited, false }), Decision{TearingDown, Wait, Remaining}},
		"something appears after the record":  {left(Awaited, true), Decision{TearingDown, Record, Deleting}},
		"nothing is left":                     {left(Quiet, false), Decision{TearingDown, Recheck, Settling}},
		"#60 recorded, then killed":           {left(Quiet, true), Decision{TearingDown, Recheck, Settling}},
		"#66 not listed":                      {left(Unlisted, true), Decision{TearingDown, Wait, Unreadable}},
		"finished":                            {left(Finished, false), Decision{Complete, Record, Completed}},
		"recorded":                            {left(Finished, true), Decision{Complete, Release, Completed}},
		"recorded, not read":                  {started(func(s *State) { s.Work, s.Recorded, s.Confirmed = Finished, true, false }), Decision{Complete, Confirm, Completed}},
		"#54 the CRD is deleted at the end":   {started(func(s *State) { s.Work, s.Recorded, s.Undefined = Finished, true, true }), Decision{Complete, Release, Completed}},
		"released, others hold":               {started(func(s *State) { s.Work, s.Recorded, s.Held = Finished, true, false }), Decision{Complete, End, Completed}},
		"#53 stripped, something is left":     {started(func(s *State) { s.Work, s.Recorded, s.Held = Awaited, true, false }), Decision{Stopped, Wait, FinalizerStripped}},
	}.run(t)
}

// states calls yield for every state: 2.2 million.
func states(yield func(State)) {
	var s State
	if fields := reflect.TypeFor[State]().NumField(); fields != 5+12 {
		panic("a field of State is not enumerated")
	}
	for s.Alive = range Present + 1 {
		for s.Word = range ValidWord + 1 {
			for s.Readiness = range Prepared + 1 {
				for s.Freeze = range InForce + 1 {
					for s.Work = range Finished + 1 {
						flags(s, yield)
					}
				}
			}
		}
	}
}

func flags(s State, yield func(State)) {
	for bits := range 1 << 12 {
		has := func(bit int) bool { return bits>>bit&1 == 1 }
		s.OtherCluster, s.Deleting, s.Held, s.Protected, s.Undefined, s.Restored = has(0), has(1), has(2), has(3), has(4), has(5)
		s.Planned, s.Kept, s.Started, s.Recorded, s.Leading, s.Confirmed = has(6), has(7), has(8), has(9), has(10), has(11)
		yield(s)
	}
}

// writes reports whether the action changes the cluster, beside the status of Alive.
func writes(a Action) bool { return a != Wait && a != End && a != Confirm && a != Recheck }

// Every permission stands alone: without any of them nothing is deleted.
func TestNothingIsDeletedWithoutEveryPermission(t *testing.T) {
	states(func(s State) {
		permitted := !s.OtherCluster && s.Alive == Present && s.Deleting && s.Held && !s.Protected && s.Word == ValidWord && !s.Restored
		if Decide(s).Action == Delete && (!permitted || !s.Started || !s.Leading || !s.Confirmed) {
			t.Fatalf("deleted: %+v", s)
		}
	})
}

// A CRD that is deleted deletes Alive, and a condition that was written by hand starts nothing.
func TestNothingIsDeletedBeforePreparation(t *testing.T) {
	states(func(s State) {
		prepared := s.Freeze == InForce && s.Planned && s.Kept && s.Work == Ready
		if Decide(s).Action == Delete && (!prepared || s.Undefined) {
			t.Fatalf("deleted: %+v", s)
		}
	})
}

func TestStartNeedsFreezePlanAndMarks(t *testing.T) {
	states(func(s State) {
		prepared := s.Readiness == Prepared && s.Freeze == InForce && s.Planned && s.Kept && s.Work != Unlisted
		if Decide(s).Action == Start && (!prepared || s.Started || !s.Deleting || s.Protected || s.Undefined || s.Word != ValidWord) {
			t.Fatalf("started: %+v", s)
		}
	})
}

func TestNothingIsWrittenBeforeDeletionOfAlive(t *testing.T) {
	states(func(s State) {
		if a := Decide(s).Action; a != Wait && a != End && !s.Deleting {
			t.Fatalf("%v: %+v", a, s)
		}
	})
}

func TestEveryWriteFollowsLiveRead(t *testing.T) {
	states(func(s State) {
		if a := Decide(s).Action; writes(a) && (!s.Confirmed || !s.Leading || s.OtherCluster || s.Alive != Present) {
			t.Fatalf("%v: %+v", a, s)
		}
	})
}

// A person who stops the teardown, and the deadline, stop every write but the removal of an early freeze.
func TestNothingIsWrittenWithoutPermission(t *testing.T) {
	states(func(s State) {
		if a := Decide(s).Action; writes(a) && a != Unfreeze && (s.Protected || s.Word != ValidWord || s.Restored || !s.Held) {
			t.Fatalf("%v: %+v", a, s)
		}
	})
}

func TestFinalizerGoesInCompleteOnly(t *testing.T) {
	states(func(s State) {
		complete := s.Recorded && s.Work == Finished && s.Started && s.Kept && s.Freeze == InForce
		if d := Decide(s); d.Action == Release && (d.Phase != Complete || !complete) {
			t.Fatalf("%v: %+v", d, s)
		}
	})
}

func TestRecordSaysCompleteOnlyOnceNothingIsLeft(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); d.Action == Record && (d.Phase == Complete) != (s.Work == Finished) {
			t.Fatalf("%v: %+v", d, s)
		}
	})
}

func TestFreezeStaysAfterStart(t *testing.T) {
	states(func(s State) {
		if Decide(s).Action == Unfreeze && (s.Started || s.Freeze == NoFreeze) {
			t.Fatalf("unfrozen: %+v", s)
		}
	})
}

// A cluster that lives on needs its new volumes: a teardown that stops before it starts leaves no freeze.
func TestFreezeGoesIfNothingStarted(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		if d.Phase == Stopped && !s.Started && s.Freeze != NoFreeze && s.Leading && d.Action != Unfreeze && d.Action != Confirm {
			t.Fatalf("%v: %+v", d, s)
		}
	})
}

// What says that a run is complete: an Alive that is gone, or is held by others only.
func TestSuccessNeedsRecord(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		if d.Action == End && d.Reason == Completed && (!s.Recorded || s.Alive == Present && (s.Held || s.Work == Ready || s.Work == Awaited)) {
			t.Fatalf("%v: %+v", d, s)
		}
	})
}

// Each state has a next step, or names what it waits for.
func TestWaitNamesWhatItWaitsFor(t *testing.T) {
	states(func(s State) {
		d := Decide(s)
		goes := s.Alive == Present && s.Deleting && d.Phase != Stopped && s.Leading && !s.OtherCluster && s.Held
		waits := map[Reason]bool{
			Checking: s.Readiness == Unchecked, FreezePending: s.Freeze == Written, Unreadable: s.Work == Unlisted,
			Remaining: s.Work == Awaited,
		}
		if goes && d.Action == Wait && !waits[d.Reason] {
			t.Fatalf("%v: %+v", d, s)
		}
	})
}

func TestEveryDecisionIsKnown(t *testing.T) {
	states(func(s State) {
		if d := Decide(s); d.Reason == "" || (d.Phase == NoPhase) != (s.OtherCluster || s.Alive == Unread || s.Alive == Absent && !s.Recorded) {
			t.Fatalf("%v: %+v", d, s)
		}
	})
}
