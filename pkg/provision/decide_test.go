package provision_test

import (
	"iter"
	"testing"

	"google.golang.org/grpc/codes"

	. "github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// callReady is the state in which the driver is called.
var callReady = State{Journaled: true, Leading: true, Want: Wanted, Prepared: Ready, Read: ClaimRead, Entry: Durable}

// callReadyBut returns callReady with a change.
func callReadyBut(change func(*State)) State {
	s := callReady
	change(&s)
	return s
}

var decideCases = map[string]struct {
	state State
	want  Decision
}{
	"the request is built first":                     {State{Journaled: true, Want: Wanted}, Decision{Prepare, VolumeWanted}},
	"the claim is read live before the entry":        {State{Journaled: true, Want: Wanted, Prepared: Ready}, Decision{ReadClaim, VolumeWanted}},
	"the entry is durable before the call":           {callReadyBut(func(s *State) { s.Entry = NoEntry }), Decision{WriteEntry, VolumeWanted}},
	"a changed request is written again":             {callReadyBut(func(s *State) { s.Entry, s.Creation = Outdated, Doubtful }), Decision{WriteEntry, VolumeWanted}},
	"the driver is called":                           {callReady, Decision{Create, VolumeWanted}},
	"the driver is called without a journal":         {callReadyBut(func(s *State) { s.Journaled, s.Entry = false, NoEntry }), Decision{Create, VolumeWanted}},
	"no call begins on an ending lease":              {callReadyBut(func(s *State) { s.Leading = false }), Decision{Wait, LeaseEnding}},
	"one pass calls once":                            {callReadyBut(func(s *State) { s.Called = true }), Decision{Wait, VolumeWanted}},
	"a created volume is recorded":                   {State{Journaled: true, Want: Wanted, Creation: Created, Entry: Durable}, Decision{Save, VolumeWanted}},
	"a gone claim's volume is recorded, too":         {State{Journaled: true, Want: Unwanted, Creation: Created, Entry: Durable}, Decision{Save, VolumeWanted}},
	"a recorded volume needs no entry":               {State{Journaled: true, Want: Wanted, Record: storage.RecordPresent, Entry: Durable}, Decision{RemoveEntry, VolumeRecorded}},
	"a recorded volume waits for the binder":         {State{Journaled: true, Want: Wanted, Record: storage.RecordPresent}, Decision{Wait, VolumeRecorded}},
	"a denied request needs no entry":                {State{Journaled: true, Want: Wanted, Creation: Failed, Entry: Durable}, Decision{RemoveEntry, VolumeAbsent}},
	"an entry without a call is removed when unused": {State{Journaled: true, Want: Unwanted, Entry: Durable}, Decision{RemoveEntry, VolumeAbsent}},
	"an open request is repeated for a gone claim":   {callReadyBut(func(s *State) { s.Want, s.Creation = Unwanted, Requested }), Decision{Create, OutcomeUnknown}},
	"an open request is sent again as it was":        {State{Journaled: true, Want: Wanted, Creation: Requested, Stored: true, Entry: Durable}, Decision{UseStored, OutcomeUnknown}},
	"a lasting request is built again":               {State{Journaled: true, Want: Wanted, Creation: Requested, Stored: true, LongRequested: true, Entry: Durable}, Decision{Prepare, VolumeWanted}},
	"a lasting one stays if no other can be built":   {State{Journaled: true, Want: Wanted, Creation: Requested, Stored: true, LongRequested: true, Prepared: Refused, Entry: Durable}, Decision{UseStored, VolumeWanted}},
	"the node of an open request is read live":       {callReadyBut(func(s *State) { s.Creation = Requested }), Decision{ReadNode, OutcomeUnknown}},
	"a created volume may be recorded already":       {State{Journaled: true, Want: Wanted, Creation: Created, Entry: Durable, Record: storage.RecordPresent}, Decision{AcceptRecord, VolumeRecorded}},
	"a doubtful one is built again while wanted":     {State{Journaled: true, Want: Wanted, Creation: Doubtful, Entry: Durable}, Decision{Prepare, VolumeWanted}},
	"a doubtful one may move to another node":        {State{Journaled: true, Want: Misplaced, Creation: Doubtful, Entry: Durable}, Decision{Reschedule, NodeUnfit}},
	"an open one may not move":                       {callReadyBut(func(s *State) { s.Want, s.Creation = Misplaced, Requested }), Decision{Create, OutcomeUnknown}},
	"an overdue entry of a gone claim is set apart":  {callReadyBut(func(s *State) { s.Want, s.Creation, s.Overdue = Unwanted, Doubtful, true }), Decision{MoveToUnresolved, NoAnswer}},
	"an overdue entry of a living claim is not":      {callReadyBut(func(s *State) { s.Creation, s.Overdue, s.NodeRead = Requested, true, true }), Decision{Create, OutcomeUnknown}},
	"an unusable volume is noted before it goes":     {State{Journaled: true, Want: Misplaced, Creation: Created, Unusable: true, Entry: Durable}, Decision{WriteDiscarding, VolumeUnused}},
	"an unusable volume is looked for live":          {State{Journaled: true, Want: Misplaced, Creation: Created, Unusable: true, Entry: Discarding}, Decision{ReadBoth, VolumeUnused}},
	"an unusable volume is deleted":                  {State{Journaled: true, Want: Misplaced, Creation: Created, Unusable: true, Entry: Discarding, Read: BothRead, Leading: true}, Decision{Discard, VolumeUnused}},
	"a taken name is looked up":                      {State{Journaled: true, Want: Wanted, Record: storage.RecordConflict}, Decision{ReadBoth, NameInUse}},
	"a taken name prevents the call":                 {State{Journaled: true, Want: Wanted, Record: storage.RecordConflict, Read: BothRead}, Decision{Wait, NameInUse}},
	"a volume beside a taken name is discarded":      {State{Journaled: true, Want: Wanted, Record: storage.RecordConflict, Creation: Created, Entry: Discarding, Read: BothRead, Leading: true}, Decision{Discard, VolumeUnused}},
	"a bound claim without a volume is never served": {State{Journaled: true, Want: BoundOrLost}, Decision{Wait, ClaimBoundOrLost}},
	"a bound claim's entry is removed":               {State{Journaled: true, Want: BoundOrLost, Creation: Requested, Entry: Durable}, Decision{RemoveEntry, ClaimBoundOrLost}},
	"a bound claim's created volume is left alone":   {State{Journaled: true, Want: BoundOrLost, Creation: Created, Entry: Durable}, Decision{RemoveEntry, ClaimBoundOrLost}},

	"an inherited entry is read live":                    {State{Want: Unwanted, Entry: Inherited}, Decision{ReadBoth, EntryInherited}},
	"an inherited entry is finished":                     {State{Want: Unwanted, Entry: Inherited, Read: BothRead}, Decision{Adopt, EntryInherited}},
	"an inherited entry of a recorded volume is removed": {State{Want: Unwanted, Record: storage.RecordPresent, Entry: Untrusted, Read: BothRead}, Decision{RemoveEntry, VolumeRecorded}},
	"an inherited entry of a bound claim is removed":     {State{Want: BoundOrLost, Entry: Untrusted, Read: BothRead}, Decision{RemoveEntry, ClaimBoundOrLost}},
	"a living claim is served in broken custody":         {State{Want: Wanted, Entry: Untrusted, Read: BothRead}, Decision{Adopt, EntryInherited}},
	"a gone claim is not":                                {State{Want: Unwanted, Entry: Untrusted, Read: BothRead}, Decision{MoveToUnresolved, CustodyBroken}},
	"a volume is not discarded in broken custody":        {State{Want: Wanted, Entry: UntrustedDiscarding, Read: BothRead}, Decision{MoveToUnresolved, CustodyBroken}},
	"a volume is discarded after a restart":              {State{Want: Unwanted, Entry: InheritedDiscarding, Read: BothRead}, Decision{Adopt, EntryInherited}},

	"an old finalizer is replaced by an entry":          {State{Journaled: true, OldFinalizer: true, Want: Unwanted, Prepared: Ready}, Decision{WriteEntry, FinalizerObsolete}},
	"an old finalizer goes once the entry stands":       {State{Journaled: true, OldFinalizer: true, Want: Unwanted, Creation: Requested, Prepared: Ready, Entry: Durable}, Decision{RemoveOldFinalizer, FinalizerObsolete}},
	"an old finalizer goes though nothing can be asked": {State{Journaled: true, OldFinalizer: true, Want: Unwanted, Prepared: Refused}, Decision{RemoveOldFinalizer, FinalizerObsolete}},
	"an old finalizer goes from a bound claim":          {State{Journaled: true, OldFinalizer: true, Want: BoundOrLost}, Decision{RemoveOldFinalizer, ClaimBoundOrLost}},
	"an old finalizer goes with the gate off":           {State{OldFinalizer: true, Want: Unwanted}, Decision{RemoveOldFinalizer, FinalizerObsolete}},

	"a claim that waits for its node is not served": {State{Journaled: true}, Decision{Wait, NotWanted}},
	"a request that cannot be built waits":          {State{Journaled: true, Want: Wanted, Prepared: Refused}, Decision{Wait, RequestRefused}},
	"a gone claim without an entry is nothing":      {State{Journaled: true, Want: Unwanted}, Decision{Wait, VolumeAbsent}},
	"another node is selected":                      {State{Journaled: true, Want: Misplaced}, Decision{Reschedule, NodeUnfit}},
}

func TestDecide(t *testing.T) {
	for name, tc := range decideCases {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// claimStates yields every state.
func claimStates() iter.Seq[State] {
	return func(yield func(State) bool) {
		for code := range 5 * 3 * 6 * 8 * 3 * 3 * 512 {
			take := func(n int) int { digit := code % n; code /= n; return digit }
			s := State{
				Want: Want(take(5)), Record: storage.Record(take(3)), Creation: Creation(take(6)), Entry: Entry(take(8)), Prepared: Prepared(take(3)), Read: Read(take(3)),
				Journaled: take(2) == 1, Unusable: take(2) == 1, OldFinalizer: take(2) == 1, Called: take(2) == 1, Leading: take(2) == 1, Overdue: take(2) == 1,
				LongRequested: take(2) == 1, Stored: take(2) == 1, NodeRead: take(2) == 1,
			}
			if !yield(s) {
				return
			}
		}
	}
}

var forbiddenDecisions = map[string]func(s State, d Decision) bool{
	"a call needs a durable entry": func(s State, d Decision) bool {
		return d.Action == Create && s.Journaled && s.Entry != Durable
	},
	"a call needs a lease, a live read and a request": func(s State, d Decision) bool {
		return d.Action == Discard && !s.Leading || d.Action == Create && (!s.Leading || s.Read == Cached || s.Prepared != Ready || s.Called)
	},
	"a bound or recorded claim is never asked for": func(s State, d Decision) bool {
		return d.Action == Create && (s.Want == BoundOrLost || s.Record == storage.RecordPresent || s.Creation == Created)
	},
	"an inherited entry leads to no call and no deletion": func(s State, d Decision) bool {
		return s.Entry >= Inherited && d.Action != ReadBoth && d.Action != RemoveEntry && d.Action != Adopt && d.Action != MoveToUnresolved
	},
	"broken custody never discards": func(s State, d Decision) bool {
		return d.Action == Adopt && (s.Entry == UntrustedDiscarding || s.Entry == Untrusted && s.Want == Unwanted)
	},
	"an inherited entry is judged by live reads": func(s State, d Decision) bool {
		return s.Entry >= Inherited && d.Action != ReadBoth && s.Read != BothRead
	},
	"only an unused volume without an object is discarded": func(s State, d Decision) bool {
		return d.Action == Discard && (s.Creation != Created || s.Record == storage.RecordPresent || s.Want == BoundOrLost || s.Read != BothRead)
	},
	"a usable volume is discarded only for a claim that wants another": func(s State, d Decision) bool {
		return d.Action == Discard && !s.Unusable && s.Record == storage.RecordAbsent && (s.Want == Wanted || s.Want == Unwanted)
	},
	"a discarded volume is in the journal": func(s State, d Decision) bool {
		return d.Action == Discard && s.Entry != Discarding && (s.Journaled || s.Entry != NoEntry)
	},
	"only a usable volume under a free name is recorded": func(s State, d Decision) bool {
		return d.Action == Save && (s.Creation != Created || s.Unusable || s.Record != storage.RecordAbsent)
	},
	"an entry is removed only when nothing is open": func(s State, d Decision) bool {
		proven := s.Record == storage.RecordPresent || s.Want == BoundOrLost || s.Creation == Failed || s.Creation == NotRequested && s.Want != Wanted
		return d.Action == RemoveEntry && (s.Entry == NoEntry || !proven)
	},
	"an entry is set apart only for a reason": func(s State, d Decision) bool {
		reason := s.Entry == Untrusted || s.Entry == UntrustedDiscarding || s.Overdue && s.Want == Unwanted
		return d.Action == MoveToUnresolved && (s.Entry == NoEntry || !reason)
	},
	"an old finalizer never waits": func(s State, d Decision) bool {
		return s.OldFinalizer && d.Action == Wait
	},
	"a created volume never waits": func(s State, d Decision) bool {
		return s.Leading && s.Creation == Created && s.Record != storage.RecordPresent && s.Want != BoundOrLost && d.Action == Wait
	},
	"a node is given up only when nothing is open": func(s State, d Decision) bool {
		return d.Action == Reschedule && (s.Creation == Requested || s.Creation == FailedOnce || s.Creation == Created || s.Want != Misplaced)
	},
	"an open request is sent again as it was": func(s State, d Decision) bool {
		repeated := s.Stored && (s.Creation == Requested || s.Creation == FailedOnce) && !s.LongRequested
		return repeated && d.Action == Prepare || d.Action == UseStored && !s.Stored
	},
	"an open request is not repeated on a node that is gone": func(s State, d Decision) bool {
		return d.Action == Create && s.Creation == Requested && s.Want == Wanted && !s.NodeRead
	},
	"only a usable recorded volume is accepted": func(s State, d Decision) bool {
		return d.Action == AcceptRecord && (s.Creation != Created || s.Unusable || s.Entry == Discarding || s.Record != storage.RecordPresent)
	},
	"no step is taken twice": func(s State, d Decision) bool {
		return d.Action == Prepare && s.Prepared != Unprepared || d.Action == UseStored && s.Prepared == Ready || d.Action == ReadNode && s.NodeRead || d.Action == ReadClaim && s.Read != Cached ||
			d.Action == ReadBoth && s.Read == BothRead || d.Action == WriteEntry && s.Entry == Durable || d.Action == WriteDiscarding && s.Entry == Discarding
	},
	"nothing new is written with the gate off": func(s State, d Decision) bool {
		return !s.Journaled && (d.Action == WriteEntry || d.Action == WriteDiscarding && s.Entry == NoEntry)
	},
}

func TestInEveryState(t *testing.T) {
	for name, broken := range forbiddenDecisions {
		t.Run(name, func(t *testing.T) {
			for s := range claimStates() {
				if d := Decide(s); broken(s, d) {
					t.Fatalf("Decide(%+v) = %v", s, d)
				}
			}
		})
	}
}

func TestAfterAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		code   codes.Code
		before Creation
		longer bool
		want   Creation
	}{
		"the driver may still work":                    {codes.DeadlineExceeded, NotRequested, false, Requested},
		"a denial of the first call counts":            {codes.InvalidArgument, NotRequested, false, Failed},
		"a denial of a later call counts once":         {codes.InvalidArgument, Requested, false, FailedOnce},
		"a denial repeated at once does not count":     {codes.ResourceExhausted, FailedOnce, false, FailedOnce},
		"a denial repeated much later counts":          {codes.ResourceExhausted, FailedOnce, true, Failed},
		"a timeout after a denial opens again":         {codes.Unavailable, FailedOnce, true, Requested},
		"an internal error is doubtful":                {codes.Internal, NotRequested, false, Doubtful},
		"an internal error after a timeout is open":    {codes.Internal, Requested, true, Requested},
		"an internal error repeated stays doubtful":    {codes.Internal, Doubtful, true, Doubtful},
		"a missing source counts at the first call":    {codes.NotFound, NotRequested, false, Failed},
		"a missing source does not count later":        {codes.NotFound, Requested, true, Requested},
		"a missing source after a denial is no denial": {codes.NotFound, FailedOnce, true, FailedOnce},
		"a volume that does not fit is doubtful":       {codes.AlreadyExists, Requested, false, Doubtful},
		"a code that CSI does not know is open":        {codes.Code(99), NotRequested, false, Requested},
	} {
		t.Run(name, func(t *testing.T) {
			if got := After(OutcomeOf(tc.code), tc.before, tc.longer); got != tc.want {
				t.Errorf("After = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnsentRequestChangesNothing(t *testing.T) {
	for before, want := range map[Creation]Creation{NotRequested: Failed, Requested: Requested, Doubtful: Doubtful, FailedOnce: FailedOnce, Failed: Failed} {
		for _, longer := range []bool{false, true} {
			if got := After(Unchanged, before, longer); got != want {
				t.Errorf("After(Unchanged, %v) = %v, want %v", before, got, want)
			}
		}
	}
}

func TestFailureAfterUnansweredCallDoesNotCountAtOnce(t *testing.T) {
	for code := range codes.Code(18) {
		for _, before := range []Creation{Requested, Doubtful, FailedOnce} {
			if got := After(OutcomeOf(code), before, false); got == Failed {
				t.Errorf("%v after %v counts as a denial", code, before)
			}
		}
	}
}
