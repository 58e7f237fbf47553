package graceful_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/graceful"
)

// The number is the row of the design.
var rows = map[string]struct {
	state State
	want  Decision
}{
	"#1 live, no grace":                       {State{Live, NoGrace, Held, false}, Decision{SetPlain, NoGraceRequested}},
	"#1 live, no grace, full":                 {State{Live, NoGrace, Held, true}, Decision{SetPlain, NoGraceRequested}},
	"#1 live, no grace, first finalizer":      {State{Live, NoGrace, FirstAdded, false}, Decision{SetPlain, NoGraceRequested}},
	"#2 live, 0":                              {State{Live, Zero, Held, false}, Decision{SetForced, ForceRequested}},
	"#3 live, 300":                            {State{Live, Earlier, Held, false}, Decision{SetDeadline, Granted}},
	"#4 live, no finalizer, no grace":         {State{Live, NoGrace, NoneLeft, false}, Decision{Leave, NoFinalizer}},
	"#4 live, no finalizer, 0":                {State{Live, Zero, NoneLeft, false}, Decision{Leave, NoFinalizer}},
	"#4 live, no finalizer, 300":              {State{Live, Earlier, NoneLeft, false}, Decision{Leave, NeedsFinalizer}},
	"#4 live, first finalizer, 0":             {State{Live, Zero, FirstAdded, false}, Decision{SetPlain, NoFinalizer}},
	"#4 live, first finalizer, 300":           {State{Live, Earlier, FirstAdded, false}, Decision{SetPlain, NeedsFinalizer}},
	"#5 graceful, no grace":                   {State{Graceful, NoGrace, Held, false}, Decision{Keep, DeadlineKept}},
	"#6 graceful, 0":                          {State{Graceful, Zero, Held, false}, Decision{SetForced, ForceRequested}},
	"#7 graceful, earlier":                    {State{Graceful, Earlier, Held, false}, Decision{SetDeadline, Shortened}},
	"#8 graceful, not earlier":                {State{Graceful, NotEarlier, Held, false}, Decision{Keep, NeverLater}},
	"#9 plain, no grace":                      {State{Plain, NoGrace, Held, false}, Decision{Leave, AlreadyPlain}},
	"#10 plain, 0":                            {State{Plain, Zero, Held, false}, Decision{SetForced, ForceRequested}},
	"#11 plain, 300":                          {State{Plain, NotEarlier, Held, false}, Decision{Leave, OnlyForceShortens}},
	"#12 forced, no grace":                    {State{Forced, NoGrace, Held, false}, Decision{Keep, AlreadyForced}},
	"#12 forced, 0":                           {State{Forced, Zero, Held, false}, Decision{Keep, ForceRequested}},
	"#12 forced, 300":                         {State{Forced, NotEarlier, Held, false}, Decision{Keep, AlreadyForced}},
	"#13 plain, none left":                    {State{Plain, NoGrace, NoneLeft, false}, Decision{Remove, NoFinalizerLeft}},
	"#13 forced, none left":                   {State{Forced, Zero, NoneLeft, false}, Decision{Remove, NoFinalizerLeft}},
	"#13 graceful, none left, 0":              {State{Graceful, Zero, NoneLeft, false}, Decision{Remove, NoFinalizerLeft}},
	"#13 graceful, none left, 300":            {State{Graceful, NotEarlier, NoneLeft, false}, Decision{Remove, NoFinalizerLeft}},
	"#15 live, 0, full":                       {State{Live, Zero, Held, true}, Decision{SetPlain, NoRoom}},
	"#15 live, 300, full":                     {State{Live, Earlier, Held, true}, Decision{SetPlain, NoRoom}},
	"#15 plain, 0, full":                      {State{Plain, Zero, Held, true}, Decision{Leave, NoRoom}},
	"#15 plain, 300, full":                    {State{Plain, NotEarlier, Held, true}, Decision{Leave, NoRoom}},
	"#17 graceful, 0, full":                   {State{Graceful, Zero, Held, true}, Decision{Keep, NoRoom}},
	"#17 graceful, earlier, full":             {State{Graceful, Earlier, Held, true}, Decision{Keep, NoRoom}},
	"#17 graceful, not earlier, full":         {State{Graceful, NotEarlier, Held, true}, Decision{Keep, NeverLater}},
	"#17 graceful, no grace, full":            {State{Graceful, NoGrace, Held, true}, Decision{Keep, DeadlineKept}},
	"#16 graceful, foreground, no grace":      {State{Graceful, NoGrace, FirstAdded, false}, Decision{Keep, NoGraceRequested}},
	"#16 graceful, foreground, 60":            {State{Graceful, Earlier, FirstAdded, false}, Decision{Keep, NeedsFinalizer}},
	"#16 plain, foreground, 0":                {State{Plain, Zero, FirstAdded, false}, Decision{Leave, NoFinalizer}},
	"#16 forced, foreground, 60":              {State{Forced, NotEarlier, FirstAdded, false}, Decision{Keep, NeedsFinalizer}},
	"#30 plain, last finalizer removed":       {State{Plain, OtherWrite, NoneLeft, false}, Decision{Remove, NoFinalizerLeft}},
	"#31 graceful, last finalizer removed":    {State{Graceful, OtherWrite, NoneLeft, false}, Decision{Remove, NoFinalizerLeft}},
	"#31 graceful, last one of a full object": {State{Graceful, OtherWrite, NoneLeft, true}, Decision{Remove, NoFinalizerLeft}},
	"#33 graceful, other write":               {State{Graceful, OtherWrite, Held, false}, Decision{Keep, DeadlineKept}},
	"#37 plain, other write":                  {State{Plain, OtherWrite, Held, false}, Decision{Keep, DeadlineKept}},
	"#37 forced, other write, full":           {State{Forced, OtherWrite, Held, true}, Decision{Reject, NoRoom}},
	"#38 live, other write":                   {State{Live, OtherWrite, Held, true}, Decision{Leave, NotDeleted}},
}

func TestDecide(t *testing.T) {
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := Decide(row.state); got != row.want {
				t.Errorf("Decide(%+v) = %v, want %v", row.state, got, row.want)
			}
		})
	}
}

// The scenario matrix of KEP-5673, with its column "CheckGracefulDelete Return". Row 9 is true if the grace period ends
// earlier than the deadline.
func TestAcceptedIsTheColumnOfTheKEP(t *testing.T) {
	for row, tc := range map[string]struct {
		state State
		want  bool
	}{
		"1":                {State{Existing: Live, Request: NoGrace}, false},
		"2":                {State{Existing: Live, Request: Zero}, true},
		"3":                {State{Existing: Live, Request: Earlier}, true},
		"4":                {State{Existing: Live, Request: NoGrace, Finalizers: NoneLeft}, false},
		"5":                {State{Existing: Live, Request: Zero, Finalizers: NoneLeft}, false},
		"6":                {State{Existing: Live, Request: Earlier, Finalizers: NoneLeft}, false},
		"7":                {State{Existing: Graceful, Request: NoGrace}, false},
		"8":                {State{Existing: Graceful, Request: Zero}, true},
		"8, plain":         {State{Existing: Plain, Request: Zero}, true},
		"8, forced":        {State{Existing: Forced, Request: Zero}, true},
		"9":                {State{Existing: Graceful, Request: Earlier}, true},
		"9, not shorter":   {State{Existing: Graceful, Request: NotEarlier}, false},
		"9, not in grace":  {State{Existing: Plain, Request: NotEarlier}, false},
		"10":               {State{Existing: Graceful, Request: NoGrace, Finalizers: NoneLeft}, false},
		"11":               {State{Existing: Graceful, Request: Zero, Finalizers: NoneLeft}, false},
		"12":               {State{Existing: Graceful, Request: Earlier, Finalizers: NoneLeft}, false},
		"none of them":     {State{Existing: Graceful, Request: OtherWrite}, false},
		"4, foreground":    {State{Existing: Live, Request: NoGrace, Finalizers: FirstAdded}, false},
		"6, foreground":    {State{Existing: Live, Request: Earlier, Finalizers: FirstAdded}, false},
		"3, annotations":   {State{Existing: Live, Request: Earlier, NoRoom: true}, false},
		"8, annotations":   {State{Existing: Plain, Request: Zero, NoRoom: true}, false},
		"7, other objects": {State{Existing: Forced, Request: NoGrace}, false},
	} {
		t.Run(row, func(t *testing.T) {
			if got := Decide(tc.state); got.Accepted() != tc.want {
				t.Errorf("Decide(%+v) = %v, accepted %t, want %t", tc.state, got, got.Accepted(), tc.want)
			}
		})
	}
}

// allStates yields each state with its decision.
func allStates(yield func(State, Decision) bool) {
	for existing := Live; existing <= Graceful; existing++ {
		for request := OtherWrite; request <= NotEarlier; request++ {
			for finalizers := Held; finalizers <= NoneLeft; finalizers++ {
				for _, noRoom := range []bool{false, true} {
					state := State{existing, request, finalizers, noRoom}
					if !yield(state, Decide(state)) {
						return
					}
				}
			}
		}
	}
}

func TestNoActionMovesDeadlineLater(t *testing.T) {
	for state, decision := range allStates {
		if decision.Action == SetDeadline && state.Existing != Live &&
			(state.Existing != Graceful || state.Request != Earlier) {
			t.Errorf("%+v: %v moves the deadline later, or gives a plain deletion one", state, decision)
		}
		if state.Existing == Graceful && (decision.Action == Leave || decision.Action == SetPlain) {
			t.Errorf("%+v: %v ends the grace period, as a stock API server does", state, decision)
		}
	}
}

func TestOnlyZeroForces(t *testing.T) {
	for state, decision := range allStates {
		if decision.Action == SetForced && state.Request != Zero {
			t.Errorf("%+v: %v without a request with 0", state, decision)
		}
	}
}

func TestNoRequestChangesNothing(t *testing.T) {
	for state, decision := range allStates {
		unnamed := state.Request == OtherWrite || state.Request == NoGrace
		if unnamed && (decision.Action == SetForced || decision.Action == SetDeadline) {
			t.Errorf("%+v: %v without a grace period in the request", state, decision)
		}
		if unnamed && decision.Accepted() || !unnamed != state.Request.NamesGrace() {
			t.Errorf("%+v: %v, accepted %t, names a grace period %t", state, decision, decision.Accepted(),
				state.Request.NamesGrace())
		}
	}
}

func TestObjectWithoutFinalizersNeverWaits(t *testing.T) {
	for state, decision := range allStates {
		gone := state.Existing != Live && state.Finalizers == NoneLeft
		if gone != (decision.Action == Remove) {
			t.Errorf("%+v: %v", state, decision)
		}
	}
}

func TestEveryWriteCanRemoveFinalizer(t *testing.T) {
	for state, decision := range allStates {
		if decision.Action == Reject && (!state.NoRoom || state.Request != OtherWrite || state.Finalizers == NoneLeft) {
			t.Errorf("%+v: %v refuses a write that fits", state, decision)
		}
	}
}

func TestEveryRowOfTheTableIsATest(t *testing.T) {
	count := 0
	for state := range allStates {
		count++
		if text := Decide(state).String(); strings.Contains(text, "invalid") || strings.HasSuffix(text, ", ") {
			t.Errorf("%+v: decision %q", state, text)
		}
	}
	if count != 120 {
		t.Errorf("%d states, want 120", count)
	}
	for _, number := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 30, 31, 33, 37, 38} {
		found := false
		for name := range rows {
			found = found || strings.HasPrefix(name, fmt.Sprintf("#%d ", number))
		}
		if !found {
			t.Errorf("no test of row #%d", number)
		}
	}
}

func TestNamesOfValues(t *testing.T) {
	for want, value := range map[string]fmt.Stringer{
		"Live": Live, "Graceful": Graceful, "invalid(4)": Graceful + 1,
		"OtherWrite": OtherWrite, "NotEarlier": NotEarlier, "invalid(5)": NotEarlier + 1,
		"Held": Held, "NoneLeft": NoneLeft, "invalid(-1)": Held - 1,
		"Leave": Leave, "Reject": Reject, "invalid(7)": Reject + 1,
		"SetDeadline, Granted": Decision{SetDeadline, Granted},
	} {
		if got := value.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
