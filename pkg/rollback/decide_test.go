package rollback_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	. "github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

// programs yields every value of ProgramState.
func programs(yield func(ProgramState) bool) {
	for bits := range 4 {
		for lease := LeaseUnseen; lease <= LeaseExpiredTwice; lease++ {
			for pods := PodsUnseen; pods <= PodsPresent; pods++ {
				if !yield(ProgramState{Lease: lease, Pods: pods, Elected: bits&1 == 1, Named: bits&2 == 2}) {
					return
				}
			}
		}
	}
}

func TestServer(t *testing.T) {
	for name, tc := range map[string]struct {
		state ProgramState
		want  Server
	}{
		"leader of Exeunt":                       {ProgramState{Lease: LeaseExeunt, Pods: PodsAbsent, Elected: true}, ServerExeunt},
		"named leader of Exeunt":                 {ProgramState{Lease: LeaseExeunt, Named: true, Elected: true}, ServerExeunt},
		"upstream leads":                         {ProgramState{Lease: LeaseOther, Pods: PodsUnseen, Elected: true}, ServerUpstream},
		"upstream leads beside unelected Exeunt": {ProgramState{Lease: LeaseOther, Pods: PodsAbsent}, ServerUnseen},
		"a pod of Exeunt without a Lease":        {ProgramState{Lease: LeaseAbsent, Pods: PodsPresent}, ServerExeunt},
		"neither Lease nor pod":                  {ProgramState{Lease: LeaseAbsent, Pods: PodsAbsent, Elected: true}, ServerUnseen},
		"neither Lease nor pod, named":           {ProgramState{Lease: LeaseAbsent, Pods: PodsAbsent, Named: true}, ServerNone},
		"expired a moment ago":                   {ProgramState{Lease: LeaseExpired, Pods: PodsAbsent, Elected: true, Named: true}, ServerUnseen},
		"Leases not listed, named":               {ProgramState{Lease: LeaseUnseen, Pods: PodsAbsent, Named: true}, ServerUnseen},
		"expired long ago, no pod":               {ProgramState{Lease: LeaseExpiredTwice, Pods: PodsAbsent, Elected: true}, ServerNone},
		"expired long ago, pods not listed":      {ProgramState{Lease: LeaseExpiredTwice, Pods: PodsUnseen, Elected: true}, ServerUnseen},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.Server(); got != tc.want {
				t.Errorf("%+v.Server() = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestSeenProgramNeverCountsAsEnded(t *testing.T) {
	for s := range programs {
		unelectedPod := s.Pods == PodsPresent && (!s.Elected || s.Lease != LeaseOther)
		if (s.Lease == LeaseExeunt || unelectedPod) && s.Server().Ended() {
			t.Errorf("%+v: %v", s, s.Server())
		}
		if !s.Named && s.Server() == ServerNone && (s.Lease != LeaseExpiredTwice || s.Pods != PodsAbsent) {
			t.Errorf("%+v counts as absent without having been seen", s)
		}
		if s.Contradicted() != (s.Named && s.Server() == ServerExeunt) {
			t.Errorf("%+v: contradicted = %t", s, s.Contradicted())
		}
	}
}

func TestAnnotationStaysWhileProgramMayRun(t *testing.T) {
	removed := 0
	for bits := range 8 {
		for server := ServerUnseen; server <= ServerNone; server++ {
			for policy := storage.PolicyUnknown; policy <= storage.PolicyDelete; policy++ {
				for status := reclaim.StatusNone; status <= reclaim.StatusDone; status++ {
					s := AnnotationState{Known: bits&1 == 1, Deleting: bits&2 == 2, Abandoned: bits&4 == 4, Server: server,
						Policy: policy, Status: status}
					decision := DecideAnnotation(s)
					if !decision.Removes() {
						continue
					}
					removed++
					leaks := status == reclaim.StatusPending && s.Deleting && policy != storage.PolicyRetain &&
						policy != storage.PolicyRecycle
					if !s.Known || !server.Ended() || leaks && !s.Abandoned {
						t.Errorf("%+v: %v", s, decision)
					}
				}
			}
		}
	}
	if removed == 0 {
		t.Error("no annotation is removed: the test proves nothing")
	}
}

func TestDecideAnnotation(t *testing.T) {
	pending := AnnotationState{Known: true, Status: reclaim.StatusPending, Policy: storage.PolicyDelete, Deleting: true}
	for name, tc := range map[string]struct {
		change func(*AnnotationState)
		want   Decision
	}{
		"Exeunt still serves":       {func(s *AnnotationState) { s.Server = ServerExeunt }, Decision{Wait, DeletionOpen}},
		"server not seen":           {func(s *AnnotationState) { s.Server = ServerUnseen }, Decision{Wait, ServerNotSeen}},
		"upstream serves":           {func(s *AnnotationState) { s.Server = ServerUpstream }, Decision{Refuse, DiskWouldLeak}},
		"disk is given up":          {func(s *AnnotationState) { s.Server, s.Abandoned = ServerUpstream, true }, Decision{Remove, DiskAbandoned}},
		"policy is Retain":          {func(s *AnnotationState) { s.Server, s.Policy = ServerNone, storage.PolicyRetain }, Decision{Remove, Unneeded}},
		"volume is not deleted":     {func(s *AnnotationState) { s.Server, s.Deleting = ServerNone, false }, Decision{Remove, Unneeded}},
		"disk is deleted":           {func(s *AnnotationState) { s.Server, s.Status = ServerUpstream, reclaim.StatusDone }, Decision{Remove, Unneeded}},
		"disk deleted, Exeunt runs": {func(s *AnnotationState) { s.Server, s.Status = ServerExeunt, reclaim.StatusDone }, Decision{Wait, ExeuntServes}},
		"unknown annotation":        {func(s *AnnotationState) { s.Server, s.Known = ServerNone, false }, Decision{Refuse, LaterVersion}},
	} {
		t.Run(name, func(t *testing.T) {
			s := pending
			tc.change(&s)
			if got := DecideAnnotation(s); got != tc.want {
				t.Errorf("DecideAnnotation(%+v) = %v, want %v", s, got, tc.want)
			}
		})
	}
}

func TestUnneededObjectStaysWhileProgramMayRun(t *testing.T) {
	for server := ServerUnseen; server <= ServerNone; server++ {
		if got := DecideUnneeded(server); got.Removes() != server.Ended() {
			t.Errorf("%v: %v", server, got)
		}
	}
}

// journalStates yields every value of JournalState.
func journalStates(yield func(JournalState) bool) {
	for bits := range 8 {
		for server := ServerUnseen; server <= ServerNone; server++ {
			for pods := PodsUnseen; pods <= PodsPresent; pods++ {
				if !yield(JournalState{Server: server, Pods: pods, Active: bits&1 == 1, Unresolved: bits&2 == 2,
					Named: bits&4 == 4}) {
					return
				}
			}
		}
	}
}

func TestDecideJournal(t *testing.T) {
	for s := range journalStates {
		want := Decision{Remove, Unneeded}
		switch {
		case s.Server == ServerExeunt && s.Active:
			want = Decision{Wait, EntriesOpen}
		case s.Server == ServerExeunt:
			want = Decision{Wait, ExeuntServes}
		case s.Server == ServerUnseen:
			want = Decision{Wait, ServerNotSeen}
		case s.Pods == PodsPresent:
			want = Decision{Wait, PodStandsBy}
		case s.Server == ServerNone && s.Active && !s.Named:
			want = Decision{Wait, EntriesInterrupted}
		case s.Active || s.Unresolved:
			want = Decision{SaveAndRemove, EntriesLeft}
		}
		if got := DecideJournal(s); got != want {
			t.Errorf("DecideJournal(%+v) = %v, want %v", s, got, want)
		}
	}
}

// Upstream's provisioner leads beside a pod of ours on standby, which could lead again.
func TestJournalStaysWhilePodStandsBy(t *testing.T) {
	for name, tc := range map[string]struct {
		pods Pods
		want Decision
	}{
		"a pod stands by":     {PodsPresent, Decision{Wait, PodStandsBy}},
		"pods are not listed": {PodsUnseen, Decision{SaveAndRemove, EntriesLeft}},
		"no pod":              {PodsAbsent, Decision{SaveAndRemove, EntriesLeft}},
	} {
		t.Run(name, func(t *testing.T) {
			program := ProgramState{Lease: LeaseOther, Pods: tc.pods, Elected: true}
			if got := DecideJournal(JournalState{Server: program.Server(), Pods: program.Pods, Active: true}); got != tc.want {
				t.Errorf("DecideJournal = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSharedFinalizerIsRemovedOnlyIfNobodyServes(t *testing.T) {
	for bits := range 4 {
		for remover := RemoverUnseen; remover <= RemoverPresent; remover++ {
			s := SharedFinalizerState{Remover: remover, Named: bits&1 == 1, InUse: bits&2 == 2}
			want := s.Named && remover == RemoverAbsent && !s.InUse
			if got := DecideSharedFinalizer(s); got.Removes() != want {
				t.Errorf("DecideSharedFinalizer(%+v) = %v, want removal: %t", s, got, want)
			}
		}
	}
	if got := DecideSharedFinalizer(SharedFinalizerState{Remover: RemoverAbsent}); got != (Decision{Keep,
		UpstreamRemoves}) {
		t.Errorf("by default: %v", got)
	}
}

func TestNodeKeepsFinalizerWhileItTerminates(t *testing.T) {
	for bits := range 8 {
		s := NodeState{Terminating: bits&1 == 1, OthersTerminate: bits&2 == 2, Led: bits&4 == 4}
		want := !s.Terminating && (!s.Led || !s.OthersTerminate)
		if got := DecideNode(s); got.Removes() != want || !want && got.Action != Wait {
			t.Errorf("DecideNode(%+v) = %v, want removal: %t", s, got, want)
		}
	}
}

func TestStateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		decisions []Decision
		want      StepState
	}{
		"nothing found":     {nil, Done},
		"only kept objects": {[]Decision{{Keep, UpstreamRemoves}}, Done},
		"waits":             {[]Decision{{Keep, UpstreamRemoves}, {Wait, ExeuntServes}}, Blocked},
		"refused":           {[]Decision{{Refuse, DiskWouldLeak}}, Blocked},
		"a rewrite":         {[]Decision{{Rewrite, InformersUnaware}}, Pending},
		"some can be done":  {[]Decision{{Wait, ExeuntServes}, {Remove, Unneeded}}, Pending},
	} {
		t.Run(name, func(t *testing.T) {
			if got := StateOf(tc.decisions); got != tc.want {
				t.Errorf("StateOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDecideSwap(t *testing.T) {
	for bits := range 8 {
		for server := ServerUnseen; server <= ServerNone; server++ {
			s := SwapState{Server: server, Replaced: bits&1 == 1, Used: bits&2 == 2, Early: bits&4 == 4}
			want := Pending
			switch {
			case server == ServerUpstream, server == ServerNone && s.Replaced, server == ServerUnseen && !s.Used:
				want = Done
			case s.Early:
				want = Blocked
			}
			if got := DecideSwap(s); got != want {
				t.Errorf("DecideSwap(%+v) = %v, want %v", s, got, want)
			}
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	wait, refuse := Decision{Wait, ExeuntServes}, Decision{Refuse, DiskWouldLeak}
	for name, tc := range map[string]struct {
		steps     []StepState
		decisions []Decision
		complete  bool
		want      Outcome
	}{
		"all done":               {[]StepState{Done, Done}, nil, true, NothingLeft},
		"all done, not all read": {[]StepState{Done}, nil, false, SomethingLeft},
		"a step waits":           {[]StepState{Done, Blocked}, []Decision{wait}, true, SomethingLeft},
		"a decision is needed":   {[]StepState{Blocked}, []Decision{wait, refuse}, false, DecisionNeeded},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OutcomeOf(tc.steps, tc.decisions, tc.complete); got != tc.want {
				t.Errorf("OutcomeOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, ServerUnseen, ServerNone)
	enumtest.ExpectNames(t, LeaseUnseen, LeaseExpiredTwice)
	enumtest.ExpectNames(t, PodsUnseen, PodsPresent)
	enumtest.ExpectNames(t, Keep, Rewrite)
	enumtest.ExpectNames(t, Unneeded, OthersTerminate)
	enumtest.ExpectNames(t, RemoverUnseen, RemoverPresent)
	enumtest.ExpectNames(t, Done, Blocked)
	enumtest.ExpectNames(t, NothingLeft, DecisionNeeded)
	for reason := Unneeded; reason <= OthersTerminate; reason++ {
		if reason.Sentence() == "" || reason.Sentence() == reason.String() {
			t.Errorf("%v has no sentence", reason)
		}
	}
}
