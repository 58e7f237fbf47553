package provision_test

import (
	"iter"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestWaitFor(t *testing.T) {
	called := State{Journaled: true, Leading: true, Want: Wanted, Creation: Requested, Entry: Durable, Called: true}
	with := func(change func(*State)) State {
		s := called
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		state  State
		reason Reason
		pass   Pass
		want   Waiting
	}{
		"failed call": {called, OutcomeUnknown, Pass{Cause: CallFailed}, Waiting{Retry: WithBackoff}},
		"failed call of a gone claim": {with(func(s *State) { s.Want = Unwanted }), OutcomeUnknown, Pass{Cause: CallFailed},
			Waiting{Retry: WithBackoff, Report: ReportUnresolved}},
		"first failure of a gone claim": {with(func(s *State) { s.Want, s.Creation = Unwanted, FailedOnce }), OutcomeUnknown,
			Pass{Cause: CallFailed}, Waiting{Retry: OnceFailureCounts}},
		"infeasible request":            {with(func(s *State) { s.Creation, s.Entry = Failed, NoEntry }), VolumeWanted, Pass{Cause: CallInfeasible}, Waiting{Retry: Late}},
		"infeasible, earlier call open": {called, OutcomeUnknown, Pass{Cause: CallInfeasible}, Waiting{Retry: WithBackoff}},
		"ignored claim":                 {with(func(s *State) { s.Creation, s.Entry = Failed, NoEntry }), VolumeWanted, Pass{Cause: CallIgnored}, Waiting{Retry: Late}},
		"ignored, earlier call open":    {called, OutcomeUnknown, Pass{Cause: CallIgnored}, Waiting{Retry: WithBackoff}},
		"repeated call":                 {called, OutcomeUnknown, Pass{}, Waiting{Retry: Soon}},
		"discarded volume":              {with(func(s *State) { s.Creation, s.Entry = Failed, NoEntry }), VolumeWanted, Pass{Cause: VolumeDiscarded}, Waiting{Retry: WithBackoff, Report: ReportFailure, Count: true}},
		"discarded for another node":    {with(func(s *State) { s.Want, s.Creation, s.Entry = Unserved, Failed, NoEntry }), NotWanted, Pass{Cause: VolumeDiscarded}, Waiting{Retry: OnEvent}},
		"request not built":             {State{Want: Wanted, Prepared: Refused}, RequestRefused, Pass{Cause: RequestFailed}, Waiting{Retry: WithBackoff, Report: ReportFailure, Count: true}},
		"not built, claim gone":         {State{Want: Unwanted, Prepared: Refused}, RequestRefused, Pass{Cause: RequestFailed}, Waiting{Retry: WithBackoff, Report: ReportUnresolved, Count: true}},
		"populator serves the claim":    {State{Want: Wanted, Prepared: Refused}, RequestRefused, Pass{Cause: OtherProvisioner}, Waiting{Report: ReportOtherProvisioner, Count: true}},
		"claim is not qualified":        {State{Want: Wanted, Prepared: Refused}, RequestRefused, Pass{Cause: OtherProvisionerUnnamed}, Waiting{Retry: Late}},
		"name conflict":                 {State{Want: Wanted, Record: storage.RecordConflict}, NameInUse, Pass{}, Waiting{Retry: WithBackoff, Report: ReportNameConflict, Count: true}},
		"volume that may be kept":       {State{Want: Unwanted, Creation: Created, MayBeKept: true}, VolumeMayBeKept, Pass{}, Waiting{Retry: Late, Report: ReportLeftAlone}},
		"lease ends":                    {State{Want: Wanted}, LeaseEnding, Pass{}, Waiting{Retry: WithBackoff}},
		"write without an answer":       {State{Want: Misplaced, Creation: Created, WriteOpen: true}, WriteUnanswered, Pass{}, Waiting{Retry: OnceWriteEnds}},
		"record not in the cache yet":   {State{Want: Wanted, Record: storage.RecordPresent}, VolumeRecorded, Pass{Unseen: true}, Waiting{Retry: OnceRecordIsMissed}},
		"recorded volume of gone claim": {State{Want: Unwanted, Record: storage.RecordPresent}, VolumeRecorded, Pass{}, Waiting{Forget: true}},
		"claim of another process":      {State{Want: Unserved}, NotWanted, Pass{Server: OtherProcess}, Waiting{Forget: true}},
		"claim without a node":          {State{Want: Unserved}, NotWanted, Pass{}, Waiting{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WaitFor(tc.state, tc.reason, tc.pass); got != tc.want {
				t.Errorf("WaitFor = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// The states differ in one condition each.
func TestClaimWaitsUntilNothingIsLeft(t *testing.T) {
	forget, recorded := Waiting{Forget: true}, storage.RecordPresent
	for name, tc := range map[string]struct {
		state State
		pass  Pass
		want  Waiting
	}{
		"bound claim":                     {State{Want: BoundOrLost}, Pass{}, forget},
		"gone claim, nothing requested":   {State{Want: Unwanted}, Pass{}, forget},
		"gone claim, request failed":      {State{Want: Unwanted, Creation: Failed, Called: true}, Pass{Cause: CallFailed}, forget},
		"gone claim, volume is recorded":  {State{Want: Unwanted, Creation: Created, Record: recorded}, Pass{}, forget},
		"gone claim, entry is left":       {State{Want: Unwanted, Entry: Durable, Record: recorded}, Pass{}, Waiting{}},
		"gone claim, volume not recorded": {State{Want: Unwanted, Creation: Created}, Pass{}, Waiting{}},
		"claim without its volume":        {State{Want: Wanted}, Pass{Unseen: true}, Waiting{}},
		"volume in the cache":             {State{Want: Wanted, Record: recorded}, Pass{}, Waiting{}},
		"volume in the cache after call":  {State{Want: Wanted, Record: recorded, Called: true}, Pass{}, Waiting{}},
		"first failure":                   {State{Want: Wanted, Creation: FailedOnce}, Pass{Cause: CallFailed}, Waiting{Retry: WithBackoff}},
		"failed request":                  {State{Want: Wanted, Creation: Failed}, Pass{Cause: CallFailed}, Waiting{Retry: WithBackoff}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WaitFor(tc.state, OutcomeUnknown, tc.pass); got != tc.want {
				t.Errorf("WaitFor = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// passes yields every pass.
func passes() iter.Seq[Pass] {
	return func(yield func(Pass) bool) {
		for code := range 8 * 2 * 3 {
			if !yield(Pass{Cause: Cause(code % 8), Unseen: code/8%2 == 1, Server: Server(code / 16)}) {
				return
			}
		}
	}
}

func TestNoUnrecordedVolumeIsForgotten(t *testing.T) {
	for s := range claimStates() {
		d := Decide(s)
		if d.Action != Wait {
			continue
		}
		for p := range passes() {
			w := WaitFor(s, d.Reason, p)
			known := s.Entry != NoEntry || !s.Record.IsOfClaim() && s.Want != BoundOrLost && s.Creation != NotRequested &&
				s.Creation != Failed
			if known && w.Forget && s.Want != Unserved {
				t.Fatalf("WaitFor(%+v, %v, %+v) = %+v", s, d.Reason, p, w)
			}
			open := s.Stored && (s.Creation == Requested || s.Creation == FailedOnce) || s.Want == Unwanted
			if known && open && w.Retry == OnEvent && s.Want != BoundOrLost && !s.Record.IsOfClaim() {
				t.Fatalf("nothing wakes the claim: WaitFor(%+v, %v, %+v) = %+v", s, d.Reason, p, w)
			}
		}
	}
}

func TestEntryIsAdoptedForItsState(t *testing.T) {
	for inherited, want := range map[Entry]Entry{Inherited: Durable, Untrusted: Outdated} {
		if entry := Adopted(inherited); entry != want {
			t.Errorf("Adopted(%v) = %v; want %v", inherited, entry, want)
		}
	}
}

func TestUnresolvedOutcomes(t *testing.T) {
	for outcome := Unanswered; outcome <= Unchanged; outcome++ {
		for _, triedAll := range []bool{false, true} {
			want := outcome == SourceMissing || outcome == Mismatch && triedAll
			if got := Unresolved(outcome, triedAll); (got != "") != want {
				t.Errorf("Unresolved(%v, %v) = %q", outcome, triedAll, got)
			}
		}
	}
}

func TestCauseOfCall(t *testing.T) {
	for want := Unserved; want <= BoundOrLost; want++ {
		for _, infeasible := range []bool{false, true} {
			cause := CallFailed
			if infeasible && want == Wanted {
				cause = CallInfeasible
			}
			if got := CauseOf(infeasible, false, want); got != cause {
				t.Errorf("CauseOf(%v, false, %v) = %v, want %v", infeasible, want, got, cause)
			}
			if got := CauseOf(infeasible, true, want); got != CallIgnored {
				t.Errorf("CauseOf(%v, true, %v) = %v", infeasible, want, got)
			}
		}
	}
}
