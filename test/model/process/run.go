package process

import "fmt"

// Run is a program that runs from input to input and never goes back to a state: for a single
// story, which a [Machine] would repeat with every input.
type Run struct{ actor *actor }

// NewRun starts the program. It is used within a bubble of testing/synctest.
func NewRun(build Build, start Start) (*Run, error) {
	client, err := newClient()
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	a, err := newActor(build, client, start.Options)
	if err != nil {
		return nil, err
	}
	run := &Run{actor: a}
	if err := run.Take(Input{Start: &start}); err != nil {
		run.End()
		return nil, err
	}
	return run, nil
}

// Take gives the program an input and lets it work.
func (r *Run) Take(input Input) error { return r.actor.take(input) }

// Local returns the state of the program.
func (r *Run) Local() Local { return r.actor.local() }

// End ends the program; what it still sends is lost.
func (r *Run) End() { r.actor.end() }
