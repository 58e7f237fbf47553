package provision_test

import (
	"iter"
	"maps"
	"slices"
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
	"request is built first":              {State{Journaled: true, Want: Wanted}, Decision{Prepare, VolumeWanted}},
	"claim is read live before the entry": {State{Journaled: true, Want: Wanted, Prepared: Ready}, Decision{ReadClaim, VolumeWanted}},
	"entry is durable before the call":    {callReadyBut(func(s *State) { s.Entry = NoEntry }), Decision{WriteEntry, VolumeWanted}},
	"changed request needs a new entry":   {callReadyBut(func(s *State) { s.Entry, s.Creation = Outdated, Doubtful }), Decision{WriteEntry, VolumeWanted}},
	"driver is called":                    {callReady, Decision{Create, VolumeWanted}},
	"driver is called without a journal":  {callReadyBut(func(s *State) { s.Journaled, s.Entry = false, NoEntry }), Decision{Create, VolumeWanted}},
	"ending lease prevents the call":      {callReadyBut(func(s *State) { s.Leading = false }), Decision{Wait, LeaseEnding}},
	"pass calls the driver once":          {callReadyBut(func(s *State) { s.Called = true }), Decision{Wait, VolumeWanted}},
	"created volume is recorded": {State{Journaled: true, Want: Wanted, Creation: Created,
		Entry: Durable}, Decision{Save, VolumeWanted}},
	"created volume of gone claim is recorded": {State{Journaled: true, Want: Unwanted, Creation: Created,
		Entry: Durable}, Decision{Save, VolumeWanted}},
	"entry of recorded volume is removed": {State{Journaled: true, Want: Wanted,
		Record: storage.RecordPresent, Entry: Durable}, Decision{RemoveEntry, VolumeRecorded}},
	"recorded volume waits for binding": {State{Journaled: true, Want: Wanted,
		Record: storage.RecordPresent}, Decision{Wait, VolumeRecorded}},
	"entry of failed request is removed": {State{Journaled: true, Want: Wanted, Creation: Failed,
		Entry: Durable}, Decision{RemoveEntry, VolumeAbsent}},
	"entry without a call is removed":        {State{Journaled: true, Want: Unwanted, Entry: Durable}, Decision{RemoveEntry, VolumeAbsent}},
	"open request of gone claim is repeated": {callReadyBut(func(s *State) { s.Want, s.Creation = Unwanted, Requested }), Decision{Create, OutcomeUnknown}},
	"open request is repeated unchanged": {State{Journaled: true, Want: Wanted, Creation: Requested,
		Stored: true, Entry: Durable}, Decision{UseStored, OutcomeUnknown}},
	"long open request is built again": {State{Journaled: true, Want: Wanted, Creation: Requested,
		Stored: true, LongRequested: true, Entry: Durable}, Decision{Prepare, VolumeWanted}},
	"long open request is repeated if unbuildable": {State{Journaled: true, Want: Wanted, Creation: Requested,
		Stored: true, LongRequested: true, Prepared: Refused, Entry: Durable}, Decision{UseStored, VolumeWanted}},
	"node of open request is read live": {callReadyBut(func(s *State) { s.Creation = Requested }), Decision{ReadNode, OutcomeUnknown}},
	"recorded volume of an unserved claim is left": {State{Journaled: true, Want: Unserved, Creation: Created,
		Made: true, Entry: Durable, Record: storage.RecordPresent}, Decision{RemoveEntry, VolumeRecorded}},
	"created volume is recorded already": {State{Journaled: true, Want: Wanted, Creation: Created,
		Entry: Durable, Record: storage.RecordPresent}, Decision{AcceptRecord, VolumeRecorded}},
	"doubtful request of wanted volume is built again": {State{Journaled: true, Want: Wanted, Creation: Doubtful,
		Entry: Durable}, Decision{Prepare, VolumeWanted}},
	"doubtful request of an unserved claim is repeated": {State{Journaled: true, Want: Unserved, Creation: Doubtful,
		Entry: Durable, Stored: true}, Decision{UseStored, OutcomeUnknown}},
	"doubtful request allows rescheduling": {State{Journaled: true, Want: Misplaced, Creation: Doubtful,
		Entry: Durable}, Decision{Reschedule, NodeUnfit}},
	"long open request allows rescheduling":          {callReadyBut(func(s *State) { s.Want, s.Creation, s.LongRequested = Misplaced, Requested, true }), Decision{Reschedule, NodeUnfit}},
	"open request prevents rescheduling":             {callReadyBut(func(s *State) { s.Want, s.Creation = Misplaced, Requested }), Decision{Create, OutcomeUnknown}},
	"overdue entry of gone claim becomes unresolved": {callReadyBut(func(s *State) { s.Want, s.Creation, s.Overdue = Unwanted, Doubtful, true }), Decision{MoveToUnresolved, NoAnswer}},
	"overdue entry of living claim stays active":     {callReadyBut(func(s *State) { s.Creation, s.Overdue, s.NodeRead = Requested, true, true }), Decision{Create, OutcomeUnknown}},
	"recorded volume for an unfit node is left": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Entry: Durable, Record: storage.RecordPresent}, Decision{RemoveEntry, VolumeRecorded}},
	"created volume for an unfit node is not recorded": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Entry: Durable}, Decision{WriteDiscarding, VolumeUnused}},
	"created volume of an unserved claim is not recorded": {State{Journaled: true, Want: Unserved, Creation: Created,
		Made: true, Entry: Durable}, Decision{WriteDiscarding, VolumeUnused}},
	"name conflict is confirmed before the discarding entry": {State{Journaled: true, Want: Wanted, Creation: Created,
		Made: true, Record: storage.RecordConflict, Entry: Durable}, Decision{ReadBoth, NameInUse}},
	"volume that may be kept needs live reads": {State{Journaled: true, Want: Wanted, Creation: Created,
		MayBeKept: true, Entry: Durable}, Decision{ReadBoth, VolumeMayBeKept}},
	"request whose volume may be kept needs live reads": {State{Journaled: true, Want: Wanted, Creation: Requested,
		MayBeKept: true, Entry: Durable}, Decision{ReadBoth, VolumeMayBeKept}},
	"volume without the finalizer is announced": {State{Journaled: true, Want: Wanted, Creation: Created,
		Unannounced: true, Entry: Durable}, Decision{Announce, VolumeWanted}},
	"the same for a claim that is gone": {State{Journaled: true, Want: Unwanted, Creation: Created,
		Unannounced: true, Entry: Durable}, Decision{Announce, VolumeWanted}},
	"without a journal nothing is announced": {State{Want: Wanted, Creation: Created, Unannounced: true,
		Entry: Durable}, Decision{Save, VolumeWanted}},
	"unusable volume is not announced": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Unusable: true, Unannounced: true, Entry: Durable}, Decision{WriteDiscarding, VolumeUnused}},
	"volume that its claim never used is recorded": {State{Journaled: true, Want: Wanted, Creation: Created,
		MayBeKept: true, Entry: Durable, Read: BothRead}, Decision{Save, VolumeWanted}},
	"unusable volume that its claim never used is discarded": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Unusable: true, MayBeKept: true, Entry: Durable, Read: BothRead},
		Decision{WriteDiscarding, VolumeUnused}},
	"volume that may be kept is left alone": {State{Journaled: true, Want: Unwanted, Creation: Created,
		MayBeKept: true, Entry: Durable, Read: BothRead}, Decision{MoveToUnresolved, VolumeMayBeKept}},
	"request whose volume may be kept is not repeated": {State{Journaled: true, Want: Unwanted, Creation: Requested,
		MayBeKept: true, Entry: Durable, Read: BothRead}, Decision{MoveToUnresolved, VolumeMayBeKept}},
	"volume that may be kept, without journal and entry": {State{Want: Unwanted, Creation: Created, MayBeKept: true,
		Read: BothRead}, Decision{Wait, VolumeMayBeKept}},
	"volume that may be kept gets an entry": {State{Journaled: true, Want: Unwanted, Creation: Created,
		MayBeKept: true, Read: BothRead}, Decision{MoveToUnresolved, VolumeMayBeKept}},
	"unusable volume gets a discarding entry": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Unusable: true, Entry: Durable}, Decision{WriteDiscarding, VolumeUnused}},
	"unusable volume needs live reads": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Unusable: true, Entry: Discarding}, Decision{ReadBoth, VolumeUnused}},
	"unusable volume is deleted": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Unusable: true, Entry: Discarding, Read: BothRead, Leading: true}, Decision{Discard, VolumeUnused}},
	"open write prevents the deletion": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Made: true, Unusable: true, Entry: Discarding, Read: BothRead, Leading: true, WriteOpen: true},
		Decision{Wait, WriteUnanswered}},
	"open write for a gone claim is not awaited": {State{Journaled: true, Want: Unwanted, Creation: Created,
		Made: true, Unusable: true, Entry: Discarding, Read: BothRead, Leading: true, WriteOpen: true},
		Decision{Discard, VolumeUnused}},
	"name conflict needs live reads": {State{Journaled: true, Want: Wanted,
		Record: storage.RecordConflict}, Decision{ReadBoth, NameInUse}},
	"name conflict prevents the call": {State{Journaled: true, Want: Wanted,
		Record: storage.RecordConflict, Read: BothRead}, Decision{Wait, NameInUse}},
	"created volume with name conflict is discarded": {State{Journaled: true, Want: Wanted,
		Record: storage.RecordConflict, Creation: Created, Made: true, Entry: Discarding, Read: BothRead, Leading: true},
		Decision{Discard, VolumeUnused}},
	"older volume for an unfit node is recorded": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Entry: Durable}, Decision{Save, VolumeWanted}},
	"older volume of an unserved claim is recorded": {State{Journaled: true, Want: Unserved, Creation: Created,
		Entry: Durable}, Decision{Save, VolumeWanted}},
	"older volume for an unfit node is recorded already": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Entry: Durable, Record: storage.RecordPresent}, Decision{AcceptRecord, VolumeRecorded}},
	"unused entry goes before a name conflict waits": {State{Journaled: true, Want: Wanted, Entry: Durable,
		Record: storage.RecordConflict, Read: BothRead}, Decision{RemoveEntry, NameInUse}},
	"older volume with a name conflict waits": {State{Journaled: true, Want: Wanted, Creation: Created,
		Entry: Durable, Record: storage.RecordConflict, Read: BothRead}, Decision{Wait, NameInUse}},
	"the same, of a gone claim": {State{Journaled: true, Want: Unwanted, Creation: Created,
		Entry: Durable, Record: storage.RecordConflict, Read: BothRead}, Decision{MoveToUnresolved, NameInUse}},
	"bound claim without a volume waits": {State{Journaled: true, Want: BoundOrLost}, Decision{Wait, ClaimBoundOrLost}},
	"entry of bound claim is removed": {State{Journaled: true, Want: BoundOrLost,
		Creation: Requested, Entry: Durable}, Decision{RemoveEntry, ClaimBoundOrLost}},
	"created volume of bound claim is left alone": {State{Journaled: true, Want: BoundOrLost, Creation: Created,
		Entry: Durable}, Decision{RemoveEntry, ClaimBoundOrLost}},

	"inherited entry needs live reads": {State{Want: Unwanted, Entry: Inherited}, Decision{ReadBoth, EntryInherited}},
	"inherited entry is adopted":       {State{Want: Unwanted, Entry: Inherited, Read: BothRead}, Decision{Adopt, EntryInherited}},
	"inherited entry of recorded volume is removed": {State{Want: Unwanted, Record: storage.RecordPresent,
		Entry: Untrusted, Read: BothRead}, Decision{RemoveEntry, VolumeRecorded}},
	"inherited entry of bound claim is removed":        {State{Want: BoundOrLost, Entry: Untrusted, Read: BothRead}, Decision{RemoveEntry, ClaimBoundOrLost}},
	"untrusted entry of living claim is adopted":       {State{Want: Wanted, Entry: Untrusted, Read: BothRead}, Decision{Adopt, EntryInherited}},
	"untrusted entry of gone claim becomes unresolved": {State{Want: Unwanted, Entry: Untrusted, Read: BothRead}, Decision{MoveToUnresolved, CustodyBroken}},
	"untrusted discarding entry becomes unresolved": {State{Want: Wanted, Entry: UntrustedDiscarding, Read: BothRead},
		Decision{MoveToUnresolved, CustodyBroken}},
	"inherited discard without its request": {State{Want: Unwanted, Entry: InheritedDiscarding, Read: BothRead},
		Decision{MoveToUnresolved, DiscardInterrupted}},
	"the same, of a living claim": {State{Want: Wanted, Entry: InheritedDiscarding, Read: BothRead},
		Decision{MoveToUnresolved, DiscardInterrupted}},

	"doubtful request of an unwanted volume is repeated": {State{Journaled: true, Want: Unwanted, Creation: Doubtful,
		Entry: Durable, Stored: true}, Decision{UseStored, OutcomeUnknown}},
	"doubtful request of a wanted volume is built again": {State{Journaled: true, Want: Wanted, Creation: Doubtful,
		Entry: Durable, Stored: true}, Decision{Prepare, VolumeWanted}},
	"refused request waits once the old one is doubted": {State{Journaled: true, Want: Wanted, Creation: Doubtful,
		Entry: Durable, Prepared: Refused, Stored: true}, Decision{Wait, RequestRefused}},
	"stored request replaces a refused one": {State{Journaled: true, Want: Wanted, Creation: Requested,
		Entry: Outdated, Prepared: Refused, Stored: true}, Decision{UseStored, OutcomeUnknown}},

	"entry of a claim with a volume elsewhere": {State{Journaled: true, Want: BoundOrLost, Creation: Requested,
		Entry: Durable, Record: storage.RecordElsewhere}, Decision{MoveToUnresolved, VolumeElsewhere}},
	"created volume beside one elsewhere": {State{Journaled: true, Want: Misplaced, Creation: Created,
		Entry: Durable, Record: storage.RecordElsewhere}, Decision{MoveToUnresolved, VolumeElsewhere}},
	"inherited entry beside a volume elsewhere": {State{Journaled: true, Want: BoundOrLost, Entry: Inherited,
		Record: storage.RecordElsewhere, Read: BothRead}, Decision{MoveToUnresolved, VolumeElsewhere}},
	"entry without a call beside one elsewhere": {State{Journaled: true, Want: Wanted, Entry: Durable,
		Record: storage.RecordElsewhere}, Decision{RemoveEntry, VolumeRecorded}},
	"claim with a volume elsewhere and no entry": {State{Journaled: true, Want: Wanted, Record: storage.RecordElsewhere}, Decision{Wait, VolumeRecorded}},
	"created volume without entry, one elsewhere": {State{Want: Wanted, Creation: Created,
		Record: storage.RecordElsewhere}, Decision{AcceptRecord, VolumeRecorded}},

	"unserved claim waits":                 {State{Journaled: true}, Decision{Wait, NotWanted}},
	"refused request waits":                {State{Journaled: true, Want: Wanted, Prepared: Refused}, Decision{Wait, RequestRefused}},
	"gone claim without an entry waits":    {State{Journaled: true, Want: Unwanted}, Decision{Wait, VolumeAbsent}},
	"claim with unfit node is rescheduled": {State{Journaled: true, Want: Misplaced}, Decision{Reschedule, NodeUnfit}},
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

// claimStates yields every state. An unusable volume is Made: another one is no answer.
func claimStates() iter.Seq[State] {
	return func(yield func(State) bool) {
		for code := range 5 * 4 * 6 * 8 * 3 * 3 * 3 * 1024 {
			take := func(n int) int { digit := code % n; code /= n; return digit }
			fit := take(3)
			s := State{
				Made: fit > 0, Unusable: fit == 2, Want: Want(take(5)), Record: storage.Record(take(4)),
				Creation: Creation(take(6)), Entry: Entry(take(8)), Prepared: Prepared(take(3)), Read: Read(take(3)),
				Journaled: take(2) == 1, MayBeKept: take(2) == 1, Called: take(2) == 1, Leading: take(2) == 1,
				Overdue:       take(2) == 1,
				LongRequested: take(2) == 1, Stored: take(2) == 1, NodeRead: take(2) == 1, Unannounced: take(2) == 1,
				WriteOpen: take(2) == 1,
			}
			if !yield(s) {
				return
			}
		}
	}
}

var forbiddenDecisions = map[string]func(s State, d Decision) bool{
	"CreateVolume needs a durable entry": func(s State, d Decision) bool {
		return d.Action == Create && s.Journaled && s.Entry != Durable
	},
	"calls need a lease, live reads and a request": func(s State, d Decision) bool {
		return d.Action == Discard && (!s.Leading || s.WriteOpen && s.Want != Unwanted) || d.Action == Create &&
			(!s.Leading || s.Read == Cached || s.Prepared != Ready || s.Called)
	},
	"bound or recorded claims need no call": func(s State, d Decision) bool {
		return d.Action == Create && (s.Want == BoundOrLost || s.Record.IsOfClaim() || s.Creation == Created)
	},
	"inherited entries lead to no call": func(s State, d Decision) bool {
		return s.Entry >= Inherited && d.Action != ReadBoth && d.Action != RemoveEntry && d.Action != Adopt &&
			d.Action != MoveToUnresolved
	},
	"untrusted entries are not adopted for deletion": func(s State, d Decision) bool {
		return d.Action == Adopt && (s.Entry == UntrustedDiscarding || s.Entry == InheritedDiscarding ||
			s.Entry == Untrusted && s.Want == Unwanted)
	},
	"only volumes that this process made are discarded": func(s State, d Decision) bool {
		return (d.Action == Discard || d.Action == WriteDiscarding) && !s.Made
	},
	"inherited entries need live reads": func(s State, d Decision) bool {
		return s.Entry >= Inherited && d.Action != ReadBoth && s.Read != BothRead
	},
	"only unrecorded created volumes are discarded": func(s State, d Decision) bool {
		return d.Action == Discard && (s.Creation != Created || s.Record.IsOfClaim() || s.Want == BoundOrLost ||
			s.Read != BothRead)
	},
	"only misplaced usable volumes are discarded": func(s State, d Decision) bool {
		return d.Action == Discard && !s.Unusable && s.Record == storage.RecordAbsent &&
			(s.Want == Wanted || s.Want == Unwanted)
	},
	"discarding needs a discarding entry": func(s State, d Decision) bool {
		return d.Action == Discard && s.Entry != Discarding && (s.Journaled || s.Entry != NoEntry)
	},
	"only usable volumes without name conflict are recorded": func(s State, d Decision) bool {
		return (d.Action == Save || d.Action == Announce) && (s.Creation != Created || s.Unusable ||
			s.Record != storage.RecordAbsent)
	},
	"open requests keep their entry": func(s State, d Decision) bool {
		isTaken := s.Record == storage.RecordConflict && s.Read == BothRead
		settled := s.Creation == Failed || s.Creation == NotRequested && (s.Want != Wanted || isTaken)
		proven := s.Record == storage.RecordPresent || s.Want == BoundOrLost || settled
		elsewhere := s.Record == storage.RecordElsewhere && (s.Entry >= Inherited || s.Creation != Failed &&
			s.Creation != NotRequested)
		return d.Action == RemoveEntry && (s.Entry == NoEntry || elsewhere || !proven && s.Record != storage.RecordElsewhere)
	},
	"volumes without the finalizer are announced before they are recorded": func(s State, d Decision) bool {
		return d.Action == Save && s.Journaled && s.Unannounced || d.Action == Announce && (!s.Journaled || !s.Unannounced)
	},
	"volumes that a user may keep are left alone": func(s State, d Decision) bool {
		touched := d.Action == Discard || d.Action == WriteDiscarding || d.Action == Announce || d.Action == Save ||
			d.Action == Create && s.Creation == Requested
		return touched && s.MayBeKept && (s.Want == Unwanted || s.Read != BothRead)
	},
	"only entries that are untrusted, overdue, perhaps kept or of another node become unresolved": func(s State,
		d Decision) bool {
		reason := s.Entry == Untrusted || s.Entry == UntrustedDiscarding || s.Entry == InheritedDiscarding ||
			s.Entry != NoEntry && s.Overdue && s.Want == Unwanted ||
			!s.Made && s.Creation == Created && s.Record == storage.RecordConflict && s.Want == Unwanted
		kept := s.MayBeKept && s.Want == Unwanted && s.Creation != NotRequested && s.Creation != Failed &&
			(s.Entry != NoEntry || s.Journaled)
		elsewhere := s.Record == storage.RecordElsewhere && s.Entry != NoEntry
		return d.Action == MoveToUnresolved && !reason && !kept && !elsewhere
	},
	"only discarding waits for an open write": func(s State, d Decision) bool {
		return d.Reason == WriteUnanswered && (!s.WriteOpen || s.Want == Unwanted || s.Creation != Created ||
			s.Entry != Discarding && (s.Journaled || s.Entry != NoEntry))
	},
	"created volumes never wait": func(s State, d Decision) bool {
		leftAlone := s.MayBeKept && s.Want == Unwanted && s.Entry == NoEntry && !s.Journaled || !s.Made &&
			s.Record == storage.RecordConflict
		return s.Leading && (!s.WriteOpen || s.Want == Unwanted) && s.Creation == Created && !s.Record.IsOfClaim() &&
			s.Want != BoundOrLost && !leftAlone && d.Action == Wait
	},
	"open requests prevent rescheduling": func(s State, d Decision) bool {
		return d.Action == Reschedule && (s.Creation == Requested && !s.LongRequested || s.Creation == FailedOnce ||
			s.Creation == Created || s.Want != Misplaced)
	},
	"open request is repeated unchanged": func(s State, d Decision) bool {
		repeated := s.Stored && (s.Creation == Requested || s.Creation == FailedOnce) && !s.LongRequested
		return repeated && d.Action == Prepare || d.Action == UseStored && !s.Stored
	},
	"repeated requests need a live node read": func(s State, d Decision) bool {
		return d.Action == Create && s.Creation == Requested && s.Want == Wanted && !s.NodeRead
	},
	"only usable recorded volumes are accepted": func(s State, d Decision) bool {
		return d.Action == AcceptRecord && (s.Creation != Created || s.Unusable || s.Entry == Discarding ||
			!s.Record.IsOfClaim())
	},
	"no step is repeated": func(s State, d Decision) bool {
		return d.Action == Prepare && s.Prepared != Unprepared || d.Action == UseStored && s.Prepared == Ready ||
			d.Action == ReadNode && s.NodeRead || d.Action == ReadClaim && s.Read != Cached ||
			d.Action == ReadBoth && s.Read == BothRead || d.Action == WriteEntry && s.Entry == Durable ||
			d.Action == WriteDiscarding && s.Entry == Discarding
	},
	"no entry is written without a journal": func(s State, d Decision) bool {
		return !s.Journaled && (d.Action == WriteEntry || d.Action == WriteDiscarding && s.Entry == NoEntry)
	},
}

func TestInvariantsOfEveryState(t *testing.T) {
	names := slices.Sorted(maps.Keys(forbiddenDecisions))
	broken := make([]func(State, Decision) bool, len(names))
	for i, name := range names {
		broken[i] = forbiddenDecisions[name]
	}
	for s := range claimStates() {
		d := Decide(s)
		for i := range broken {
			if broken[i](s, d) {
				t.Fatalf("%s: Decide(%+v) = %v", names[i], s, d)
			}
		}
	}
}

func TestCreationAfterError(t *testing.T) {
	for name, tc := range map[string]struct {
		code   codes.Code
		before Creation
		longer bool
		want   Creation
	}{
		"timeout keeps the request open":                   {codes.DeadlineExceeded, NotRequested, false, Requested},
		"failure of first call counts":                     {codes.InvalidArgument, NotRequested, false, Failed},
		"first failure after timeout does not count":       {codes.InvalidArgument, Requested, false, FailedOnce},
		"failure repeated at once does not count":          {codes.OutOfRange, FailedOnce, false, FailedOnce},
		"failure repeated much later counts":               {codes.OutOfRange, FailedOnce, true, Failed},
		"driver without rights proves nothing":             {codes.PermissionDenied, Requested, true, Requested},
		"driver without credentials proves nothing":        {codes.Unauthenticated, FailedOnce, true, FailedOnce},
		"throttled driver proves nothing":                  {codes.ResourceExhausted, Requested, true, Requested},
		"driver without the call proves nothing":           {codes.Unimplemented, Doubtful, true, Doubtful},
		"full storage at first call counts":                {codes.ResourceExhausted, NotRequested, false, Failed},
		"timeout after failure reopens the request":        {codes.Unavailable, FailedOnce, true, Requested},
		"internal error is doubtful":                       {codes.Internal, NotRequested, false, Doubtful},
		"internal error after timeout stays open":          {codes.Internal, Requested, true, Requested},
		"repeated internal error stays doubtful":           {codes.Internal, Doubtful, true, Doubtful},
		"missing source at first call counts":              {codes.NotFound, NotRequested, false, Failed},
		"missing source after timeout does not count":      {codes.NotFound, Requested, true, Requested},
		"missing source after failure does not count":      {codes.NotFound, FailedOnce, true, FailedOnce},
		"internal error after failure reopens the request": {codes.Internal, FailedOnce, true, Requested},
		"late first failure after timeout does not count":  {codes.InvalidArgument, Requested, true, FailedOnce},
		"mismatch is doubtful":                             {codes.AlreadyExists, Requested, false, Doubtful},
		"unknown code keeps the request open":              {codes.Code(99), NotRequested, false, Requested},
	} {
		t.Run(name, func(t *testing.T) {
			if got := After(OutcomeOf(tc.code), tc.before, tc.longer); got != tc.want {
				t.Errorf("After = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnsentRequestChangesNothing(t *testing.T) {
	for before, want := range map[Creation]Creation{NotRequested: Failed, Requested: Requested, Doubtful: Doubtful,
		FailedOnce: FailedOnce, Failed: Failed} {
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
				t.Errorf("%v after %v counts as a proof that no volume exists", code, before)
			}
		}
	}
}
