package rollback

import "github.com/exeunt-io/exeunt/internal/enum"

// StepState is the state of a step of the plan.
type StepState int

const (
	// Done: nothing is left to do.
	Done StepState = iota
	// Pending: the step can be carried out now.
	Pending
	// Blocked: something else has to happen, or to be decided, first.
	Blocked
)

// String returns the name of the value.
func (s StepState) String() string { return enum.Name(s, "done", "pending", "blocked") }

// MarshalText returns the state for JSON and YAML.
func (s StepState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// StateOf returns the state of a step that consists of the decisions.
func StateOf(decisions []Decision) StepState {
	state := Done
	for _, decision := range decisions {
		switch decision.Action {
		case Remove, SaveAndRemove, Rewrite:
			return Pending
		case Wait, Refuse:
			state = Blocked
		case Keep:
		}
	}
	return state
}

// SwapState is the observed state of the replacement of a program of Exeunt.
type SwapState struct {
	Server Server
	// Replaced: the administrator says that the program has ended for good, or upstream's
	// program has no Lease of its own to show.
	Replaced bool
	// Used: something shows that the program ran here.
	Used bool
	// Early: something is left that only the program of Exeunt finishes.
	Early bool
}

// DecideSwap returns the state of the step in which the administrator replaces a program of
// Exeunt by upstream's.
func DecideSwap(s SwapState) StepState {
	switch {
	case s.Server == ServerUpstream, s.Server == ServerNone && s.Replaced, s.Server == ServerUnseen && !s.Used:
		return Done
	case s.Early:
		return Blocked
	}
	return Pending
}

// Outcome is the result of a plan.
type Outcome int

const (
	// NothingLeft: every step is done.
	NothingLeft Outcome = iota
	// SomethingLeft: a step is not done.
	SomethingLeft
	// DecisionNeeded: the administrator has to decide about a step.
	DecisionNeeded
)

// String returns the name of the value.
func (o Outcome) String() string {
	return enum.Name(o, "nothing left", "something left", "decision needed")
}

// OutcomeOf returns the result of a plan with these steps and decisions. complete: everything
// was read, and the names that the administrator gave were found.
func OutcomeOf(steps []StepState, decisions []Decision, complete bool) Outcome {
	outcome := NothingLeft
	if !complete {
		outcome = SomethingLeft
	}
	for _, step := range steps {
		if step != Done {
			outcome = SomethingLeft
		}
	}
	for _, decision := range decisions {
		if decision.Action == Refuse {
			return DecisionNeeded
		}
	}
	return outcome
}
