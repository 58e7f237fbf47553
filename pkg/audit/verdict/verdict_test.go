package verdict_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

// sure is the state of a volume that both complete lists have and nothing refers to.
var sure = State{Enumerated: true, Complete: true, ListedTwice: true}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*State)
		want   Verdict
	}{
		"unreferenced volume is an orphan":         {func(*State) {}, Verdict{Orphan, NoReason}},
		"recorded volume is known":                 {func(s *State) { s.Recorded = true }, Verdict{Known, NoReason}},
		"recorded and attached volume is known":    {func(s *State) { s.Recorded, s.Attached = true, true }, Verdict{Known, NoReason}},
		"attached volume is doubtful":              {func(s *State) { s.Attached = true }, Verdict{Doubtful, Attached}},
		"snapshot source is doubtful":              {func(s *State) { s.SnapshotSource = true }, Verdict{Doubtful, SnapshotSource}},
		"clone source is doubtful":                 {func(s *State) { s.CloneSource = true }, Verdict{Doubtful, CloneSource}},
		"inline volume is doubtful":                {func(s *State) { s.Inline = true }, Verdict{Doubtful, InlineVolume}},
		"other spelling is doubtful":               {func(s *State) { s.HandleAlike = true }, Verdict{Doubtful, HandleAlike}},
		"volume of a claim is doubtful":            {func(s *State) { s.InFlight = true }, Verdict{Doubtful, CreationInFlight}},
		"volume of unresolved entry is doubtful":   {func(s *State) { s.EntryUnresolved, s.InFlight = true, true }, Verdict{Doubtful, Unresolved}},
		"incomplete references make it doubtful":   {func(s *State) { s.Complete = false }, Verdict{Doubtful, Unresolved}},
		"wrong list of volumes makes it doubtful":  {func(s *State) { s.Enumerated = false }, Verdict{Doubtful, Unresolved}},
		"volume that was listed once is doubtful":  {func(s *State) { s.ListedTwice = false }, Verdict{Doubtful, SeenOnce}},
		"a definite reason counts before the rest": {func(s *State) { *s = State{SnapshotSource: true} }, Verdict{Doubtful, SnapshotSource}},
	} {
		t.Run(name, func(t *testing.T) {
			state := sure
			tc.change(&state)
			if got := Decide(state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", state, got, tc.want)
			}
		})
	}
}

func TestOnlyUnreferencedVolumeIsOrphan(t *testing.T) {
	orphans := 0
	for s := range states {
		if Decide(s).Class != Orphan {
			continue
		}
		orphans++
		if s != sure {
			t.Errorf("orphan: %+v", s)
		}
	}
	if orphans != 1 {
		t.Errorf("%d of all states are orphans, want 1", orphans)
	}
}

func TestOnlyDoubtfulVolumeHasReason(t *testing.T) {
	for s := range states {
		if got := Decide(s); (got.Class == Doubtful) != (got.Reason != NoReason) {
			t.Errorf("Decide(%+v) = %v", s, got)
		}
		if got := Decide(s); (got.Class == Known) != s.Recorded {
			t.Errorf("Decide(%+v) = %v", s, got)
		}
	}
}

// states yields every value of State.
func states(yield func(State) bool) {
	for bits := range 1 << 11 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		s := State{
			Recorded: on(0), Attached: on(1), SnapshotSource: on(2), CloneSource: on(3), Inline: on(4), HandleAlike: on(5),
			EntryUnresolved: on(6), InFlight: on(7), Enumerated: on(8), Complete: on(9), ListedTwice: on(10),
		}
		if !yield(s) {
			return
		}
	}
}

func TestDecideRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		state RecordState
		want  RecordClass
	}{
		"listed volume is sound":         {RecordState{Listed: true, Present: true}, Sound},
		"unasked volume is sound":        {RecordState{Present: true}, Sound},
		"existing volume is unlisted":    {RecordState{Answer: Exists, Present: true}, Unlisted},
		"other errors prove nothing":     {RecordState{Answer: Unanswered, Present: true}, Unlisted},
		"absent volume is a ghost":       {RecordState{Answer: Absent, Present: true}, Ghost},
		"released volume is no ghost":    {RecordState{Answer: Absent, Present: true, Released: true}, Sound},
		"terminating volume is no ghost": {RecordState{Answer: Absent, Present: true, Terminating: true}, Sound},
		"volume that went is no ghost":   {RecordState{Answer: Absent}, Sound},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideRecord(tc.state); got != tc.want {
				t.Errorf("DecideRecord(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestGhostIsPresentAndProvenAbsent(t *testing.T) {
	ghosts := 0
	for bits := range 1 << 4 {
		for answer := Unasked; answer <= Unanswered; answer++ {
			on := func(i int) bool { return bits>>i&1 == 1 }
			s := RecordState{Listed: on(0), Answer: answer, Present: on(1), Released: on(2), Terminating: on(3)}
			got := DecideRecord(s)
			if got == Ghost {
				ghosts++
			}
			if got == Ghost && (s.Listed || s.Answer != Absent || !s.Present || s.Released || s.Terminating) {
				t.Errorf("ghost: %+v", s)
			}
			if got == Unlisted && (s.Listed || s.Answer == Absent) {
				t.Errorf("unlisted: %+v", s)
			}
		}
	}
	if ghosts == 0 {
		t.Error("no state is a ghost: the test proves nothing")
	}
}

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, Known, Orphan)
	enumtest.ExpectNames(t, NoReason, SeenOnce)
	enumtest.ExpectNames(t, Unasked, Unanswered)
	enumtest.ExpectNames(t, Sound, Ghost)
}
