package signal

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// judged are what a finder says of a controller.
var judged = map[blocker.Reason]blocker.Verdict{blocker.ControllerActs: blocker.Waiting, blocker.ControllerFails: blocker.Stuck,
	blocker.ControllerGone: blocker.Stuck, blocker.ControllerUnseen: blocker.Unknown}

// everyState calls the function with each state.
func everyState(call func(State)) {
	for bits := range 16 {
		for _, word := range []teardown.Word{teardown.NoWord, teardown.OtherWord, teardown.ExpiredWord, teardown.ValidWord} {
			for runner, verdict := range judged {
				call(State{Deleted: bits&1 != 0, Protected: bits&2 != 0, Undefined: bits&4 != 0, Reported: bits&8 != 0, Word: word,
					Runner: runner, Verdict: verdict})
			}
		}
	}
}

func TestDecideOverAllStates(t *testing.T) {
	everyState(func(s State) {
		permitted := !s.Protected && !s.Undefined && s.Word == teardown.ValidWord
		reason, verdict := Decide(s)
		if !s.Deleted && verdict != blocker.None {
			t.Errorf("nothing was deleted, and %+v waits: %v %v", s, verdict, reason)
		}
		if runs := s.Deleted && permitted && !s.Reported && s.Runner == blocker.ControllerActs; runs != (verdict == blocker.Waiting) {
			t.Errorf("%+v: %v %v", s, verdict, reason)
		}
		if s.Deleted && !permitted && (reason != blocker.TeardownStopped || verdict != blocker.Stuck) {
			t.Errorf("%+v is not permitted: %v %v", s, verdict, reason)
		}
	})
}

func TestDecide(t *testing.T) {
	valid := teardown.ValidWord
	for name, tc := range map[string]struct {
		state   State
		reason  blocker.Reason
		verdict blocker.Verdict
	}{
		"protected":          {State{Protected: true, Word: valid}, blocker.ClusterProtected, blocker.None},
		"no word":            {State{}, blocker.ClusterProtected, blocker.None},
		"armed":              {State{Word: valid}, blocker.TeardownArmed, blocker.None},
		"#56 protected":      {State{Deleted: true, Protected: true, Word: valid, Runner: blocker.ControllerActs}, blocker.TeardownStopped, blocker.Stuck},
		"#52 expired":        {State{Deleted: true, Word: teardown.ExpiredWord}, blocker.TeardownStopped, blocker.Stuck},
		"#51 other cluster":  {State{Deleted: true, Word: teardown.OtherWord}, blocker.TeardownStopped, blocker.Stuck},
		"#54 CRD is deleted": {State{Deleted: true, Undefined: true, Word: valid}, blocker.TeardownStopped, blocker.Stuck},
		"#64 paused":         {State{Deleted: true, Reported: true, Word: valid, Runner: blocker.ControllerActs}, blocker.TeardownStopped, blocker.Stuck},
		"runner leads":       {State{Deleted: true, Word: valid, Runner: blocker.ControllerActs, Verdict: blocker.Waiting}, blocker.TeardownRuns, blocker.Waiting},
		"runner is doubtful": {State{Deleted: true, Word: valid, Runner: blocker.ControllerActs, Verdict: blocker.Unknown}, blocker.TeardownRuns, blocker.Unknown},
		"runner is gone":     {State{Deleted: true, Word: valid, Runner: blocker.ControllerGone, Verdict: blocker.Stuck}, blocker.ControllerGone, blocker.Stuck},
		"runner is unseen":   {State{Deleted: true, Word: valid, Runner: blocker.ControllerUnseen, Verdict: blocker.Unknown}, blocker.ControllerUnseen, blocker.Unknown},
	} {
		if reason, verdict := Decide(tc.state); reason != tc.reason || verdict != tc.verdict {
			t.Errorf("%s: %v %v, want %v %v", name, verdict, reason, tc.verdict, tc.reason)
		}
	}
}

func TestDecideParticipantOverAllStates(t *testing.T) {
	want := map[Program]blocker.Reason{ProgramUnseen: blocker.ControllerUnseen, ProgramGone: blocker.ControllerGone,
		ProgramFails: blocker.ControllerFails, ProgramRuns: blocker.ControllerActs}
	for bits := range 4 {
		for program, reason := range want {
			s := ParticipantState{MayAct: bits&1 != 0, Permitted: bits&2 != 0, Program: program}
			switch {
			case s.MayAct:
			case s.Permitted:
				reason = blocker.TeardownRuns
			default:
				reason = blocker.TeardownStopped
			}
			verdict, judgedByProgram := judged[reason]
			if !judgedByProgram && reason == blocker.TeardownRuns {
				verdict = blocker.Waiting
			} else if !judgedByProgram {
				verdict = blocker.Stuck
			}
			if got, found := DecideParticipant(s); got != reason || found != verdict {
				t.Errorf("%+v: %v %v, want %v %v", s, found, got, verdict, reason)
			}
		}
	}
}

func TestWordOfSpec(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(offset time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(offset))) }
	for name, tc := range map[string]struct {
		spec alive.Spec
		want teardown.Word
	}{
		"nothing":         {alive.Spec{}, teardown.NoWord},
		"no time":         {alive.Spec{Confirm: "id"}, teardown.NoWord},
		"future":          {alive.Spec{Confirm: "id", ConfirmedAt: at(6 * time.Minute)}, teardown.NoWord},
		"other cluster":   {alive.Spec{Confirm: "other", ConfirmedAt: at(0)}, teardown.OtherWord},
		"an hour is over": {alive.Spec{Confirm: "id", ConfirmedAt: at(-time.Hour)}, teardown.ExpiredWord},
		"time is left":    {alive.Spec{Confirm: "id", ConfirmedAt: at(-time.Minute)}, teardown.ValidWord},
	} {
		if got := wordOf(&alive.Alive{Spec: tc.spec}, "id", now); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	unread := &alive.Alive{Spec: alive.Spec{Confirm: "id", ConfirmedAt: at(0)}}
	if got := wordOf(unread, "", now); got != teardown.ValidWord {
		t.Errorf("namespace kube-system was not read: %v", got)
	}
}

func TestProgramOfNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		workloads workloads
		want      Program
	}{
		"all ready":                {workloads{seen: true, count: 2, wanted: 3, ready: 3, pods: 3}, ProgramRuns},
		"one is not ready":         {workloads{seen: true, count: 2, wanted: 3, ready: 2, pods: 3}, ProgramUnseen},
		"switched off":             {workloads{seen: true, count: 1}, ProgramGone},
		"switched off, a pod left": {workloads{seen: true, count: 1, pods: 1}, ProgramUnseen},
		"starts again":             {workloads{seen: true, count: 1, wanted: 1}, ProgramUnseen},
		"no workload":              {workloads{seen: true}, ProgramUnseen},
		"pods of no workload":      {workloads{seen: true, pods: 1}, ProgramUnseen},
		"not all seen":             {workloads{count: 1}, ProgramUnseen},
	} {
		if got := tc.workloads.program(); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
