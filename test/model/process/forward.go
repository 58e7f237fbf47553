package process

import (
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
)

// Forward runs the processes of one program and never goes back to a state: for a single long
// story, which a [Machine] would repeat with every input. [Forward.Next] only promises a state,
// and [Forward.Take] carries out one of the promises.
type Forward struct {
	build  Build
	client kubernetes.Interface
	states map[State]*Local
	// live has the processes by their state.
	live  map[State]*actor
	last  State
	loops []string
}

// NewForward returns a Forward of a program. It is used within a bubble of testing/synctest.
func NewForward(build Build) (*Forward, error) {
	client, err := newClient()
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Forward{build: build, client: client, states: map[State]*Local{Off: {}}, live: map[State]*actor{}}, nil
}

// Local returns what is known of the state. A promised state is busy.
func (f *Forward) Local(state State) *Local { return f.states[state] }

// Loop returns the name of a loop.
func (f *Forward) Loop(number int) string { return at(f.loops, number) }

// Next promises the state after the input.
func (f *Forward) Next(state State, input Input, _ string) (State, error) {
	if _, runs := f.live[state]; !runs && input.Start == nil {
		return Off, errors.New("the program does not run")
	}
	f.last++
	f.states[f.last] = &Local{Busy: true, before: state, input: input}
	return f.last, nil
}

// IsPromised reports whether the state is promised, and not carried out.
func (f *Forward) IsPromised(state State) bool {
	_, runs := f.live[state]
	return state != Off && !runs
}

// Take gives the process the input of a promised state. The process leaves the state before. Time
// passes by the function.
func (f *Forward) Take(promise State, pass func(seconds int)) error {
	input, before := f.states[promise].input, f.states[promise].before
	a, err := f.live[before], error(nil)
	if input.Start != nil {
		a, err = newActor(f.build, f.client, input.Start.Options)
	}
	if err != nil {
		return err
	}
	delete(f.live, before)
	f.live[promise] = a
	if f.loops == nil {
		for _, loop := range a.program.Loops {
			f.loops = append(f.loops, loop.Name())
		}
	}
	if input.Seconds > 0 {
		pass(input.Seconds)
		f.observe(promise, a.settle())
		return nil
	}
	f.observe(promise, a.take(input))
	return nil
}

// Keep forgets all states but these, and ends their processes.
func (f *Forward) Keep(states ...State) {
	kept := map[State]*Local{Off: f.states[Off]}
	for _, state := range states {
		kept[state] = f.states[state]
	}
	f.states = kept
	for state, a := range f.live {
		if _, known := kept[state]; !known {
			a.end()
			delete(f.live, state)
		}
	}
}

// Refresh lets the processes do what the time that has passed makes them do: time passes for
// all processes of a bubble.
func (f *Forward) Refresh() {
	for state, a := range f.live {
		f.observe(state, a.settle())
	}
}

func (f *Forward) observe(state State, stuck error) {
	local := f.live[state].local()
	if stuck != nil {
		local.Stuck = stuck.Error()
	}
	f.states[state] = &local
}

// IsSending reports whether a process waits for an answer.
func (f *Forward) IsSending() bool {
	for _, a := range f.live {
		if len(a.waiting) > 0 {
			return true
		}
	}
	return false
}
