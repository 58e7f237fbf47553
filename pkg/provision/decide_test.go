package provision_test

import (
	"iter"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"the request is built before anything is written":           {State{Holds: true, Want: Wanted}, Decision{Prepare, VolumeWanted}},
		"a claim is held before the driver is asked":                {State{Holds: true, Want: Wanted, Prepared: Ready}, Decision{Hold, VolumeWanted}},
		"a held claim is read live before the driver is asked":      {State{Holds: true, Held: true, Want: Wanted, Prepared: Ready}, Decision{ReadClaim, VolumeWanted}},
		"the driver is asked":                                       {State{Holds: true, Held: true, Want: Wanted, Prepared: Ready, Read: ClaimRead}, Decision{Ask, VolumeWanted}},
		"without holds the driver is asked after a live read":       {State{Want: Wanted, Prepared: Ready, Read: ClaimRead}, Decision{Ask, VolumeWanted}},
		"what was made is recorded":                                 {State{Held: true, Want: Wanted, Asked: Made}, Decision{Save, VolumeWanted}},
		"a recorded volume waits for the binder":                    {State{Held: true, Want: Wanted, Known: Recorded}, Decision{Wait, VolumeRecorded}},
		"the claim of a recorded volume is let go when bound":       {State{Held: true, Want: Unwanted, Known: Recorded, Asked: Perhaps}, Decision{LetGo, VolumeRecorded}},
		"a claim that was never served is let go":                   {State{Held: true, Want: Unwanted}, Decision{LetGo, NothingMade}},
		"a process that was started since asks again":               {State{Held: true, Want: Unwanted, Asked: Perhaps, Prepared: Ready, Read: ClaimRead}, Decision{Ask, OutcomeUnknown}},
		"what was made for a deleted claim is looked up":            {State{Held: true, Want: Unwanted, Asked: Made}, Decision{ReadBoth, VolumeUnwanted}},
		"what was made for a deleted claim is deleted":              {State{Held: true, Want: Unwanted, Asked: Made, Read: BothRead}, Decision{Discard, VolumeUnwanted}},
		"what is deleted holds nothing":                             {State{Held: true, Want: Unwanted, Asked: Settled}, Decision{LetGo, NothingMade}},
		"a failure is asked again once nobody else would":           {State{Held: true, Want: Unwanted, Asked: Failed, Prepared: Ready, Read: ClaimRead}, Decision{Ask, OutcomeUnknown}},
		"what the driver denies is asked once more":                 {State{Held: true, Want: Unwanted, Asked: Denied, Prepared: Ready, Read: ClaimRead}, Decision{Ask, OutcomeUnknown}},
		"a claim that cannot be served is not held":                 {State{Holds: true, Held: true, Want: Wanted, Prepared: Refused}, Decision{LetGo, RequestRefused}},
		"a request that can no longer be built keeps the hold":      {State{Holds: true, Held: true, Want: Unwanted, Asked: Perhaps, Prepared: Refused}, Decision{Wait, RequestRefused}},
		"what never could be asked for was not asked for":           {State{Holds: true, Held: true, Want: Wanted, Asked: Perhaps, Prepared: Impossible}, Decision{LetGo, RequestRefused}},
		"nor is it held once it is deleted":                         {State{Holds: true, Held: true, Want: Unwanted, Asked: Perhaps, Prepared: Impossible}, Decision{LetGo, NothingMade}},
		"what this process has asked for is open all the same":      {State{Holds: true, Held: true, Want: Unwanted, Asked: Pending, Prepared: Impossible}, Decision{Wait, RequestRefused}},
		"a node that is gone is given back":                         {State{Held: true, Want: Misplaced}, Decision{Reschedule, NodeUnfit}},
		"a node is not given back while the driver may be at it":    {State{Held: true, Want: Misplaced, Asked: Pending, Prepared: Ready, Read: ClaimRead}, Decision{Ask, OutcomeUnknown}},
		"what was made near a node that is gone is deleted":         {State{Held: true, Want: Misplaced, Asked: Made, Read: BothRead}, Decision{Discard, VolumeUnwanted}},
		"an impostor is looked up":                                  {State{Want: Wanted, Known: Impostor}, Decision{ReadBoth, NameTaken}},
		"an impostor keeps the driver from being asked":             {State{Want: Wanted, Known: Impostor, Read: BothRead}, Decision{Wait, NameTaken}},
		"what was made beside an impostor is deleted":               {State{Want: Wanted, Known: Impostor, Asked: Made, Read: BothRead}, Decision{Discard, VolumeUnwanted}},
		"a claim that waits for its node is not asked for":          {State{Held: true, Asked: Perhaps}, Decision{Wait, NotWanted}},
		"a node deselected while the driver is at it is not lost":   {State{Held: true, Asked: Pending, Prepared: Ready, Read: ClaimRead}, Decision{Ask, OutcomeUnknown}},
		"a claim deleted without a hold is remembered by process":   {State{Holds: true, Want: Unwanted, Asked: Pending, Prepared: Ready, Read: ClaimRead}, Decision{Ask, OutcomeUnknown}},
		"a claim that names a volume and is not held is left alone": {State{Holds: true, Want: Unwanted}, Decision{Wait, NothingMade}},
	} {
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
		for code := range 2 * 2 * 4 * 3 * 7 * 4 * 3 {
			take := func(n int) int { digit := code % n; code /= n; return digit }
			s := State{
				Holds: take(2) == 1, Held: take(2) == 1, Want: Want(take(4)), Known: Known(take(3)),
				Asked: Asked(take(7)), Prepared: Prepared(take(4)), Read: Read(take(3)),
			}
			if !yield(s) {
				return
			}
		}
	}
}

func TestInEveryState(t *testing.T) {
	for name, broken := range map[string]func(s State, d Decision) bool{
		"a hold is not let go while an unrecorded volume may exist": func(s State, d Decision) bool {
			return d.Action == LetGo && s.Known != Recorded && s.Open()
		},
		"only a held claim is let go": func(s State, d Decision) bool { return d.Action == LetGo && !s.Held },
		"a claim that wants nothing is let go once nothing is open": func(s State, d Decision) bool {
			return s.Held && s.Want == Unwanted && (s.Known == Recorded || !s.Open()) && d.Action != LetGo
		},
		"the driver is asked only for a claim that was read": func(s State, d Decision) bool {
			return d.Action == Ask && s.Read == Cached
		},
		"the driver is asked only for a claim that is held, where claims are": func(s State, d Decision) bool {
			return d.Action == Ask && s.Holds && !s.Held && s.Want != Unwanted
		},
		"the driver is not asked for a recorded volume": func(s State, d Decision) bool {
			return d.Action == Ask && s.Known == Recorded
		},
		"a volume is deleted only if it is known by handle, and not recorded, after a look": func(s State, d Decision) bool {
			return d.Action == Discard && (s.Asked != Made || s.Known == Recorded || s.Read != BothRead)
		},
		"a volume that the claim wants is not deleted": func(s State, d Decision) bool {
			return d.Action == Discard && s.Want == Wanted && s.Known == Absent
		},
		"a volume is recorded only for a claim that wants it": func(s State, d Decision) bool {
			return d.Action == Save && (s.Want != Wanted || s.Asked != Made)
		},
		"no hold is put on a claim that wants nothing": func(s State, d Decision) bool {
			return d.Action == Hold && (s.Held || s.Want == Unwanted || !s.Holds)
		},
		"a node is given back only when nothing is open": func(s State, d Decision) bool {
			return d.Action == Reschedule && (s.Open() || s.Want != Misplaced)
		},
		"what was made never waits": func(s State, d Decision) bool {
			return s.Asked == Made && s.Known != Recorded && d.Action == Wait
		},
		"a step that was taken is not taken again at once": func(s State, d Decision) bool {
			return d.Action == Prepare && s.Prepared != Unprepared || d.Action == ReadClaim && s.Read != Cached || d.Action == ReadBoth && s.Read == BothRead
		},
	} {
		t.Run(name, func(t *testing.T) {
			for s := range claimStates() {
				if d := Decide(s); broken(s, d) {
					t.Errorf("Decide(%+v) = %v", s, d)
				}
			}
		})
	}
}

func TestAfterAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome Outcome
		want    Want
		before  Asked
		known   Asked
	}{
		"the driver may be at it":                         {Unknown, Wanted, Never, Pending},
		"the driver may be at it though it denied before": {Unknown, Unwanted, Denied, Pending},
		"there is none, and the claim asks again":         {Final, Wanted, Pending, Failed},
		"there is none near the node":                     {Final, Misplaced, Pending, Failed},
		"there is none, it says once":                     {Final, Unwanted, Failed, Denied},
		"there is none, it says twice":                    {Final, Unwanted, Denied, Settled},
	} {
		t.Run(name, func(t *testing.T) {
			if got := After(tc.outcome, tc.want, tc.before); got != tc.known {
				t.Errorf("After = %v, want %v", got, tc.known)
			}
		})
	}
}
