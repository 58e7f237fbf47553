package model

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// Step is one step of the world.
type Step struct {
	// After is the state after the step.
	After *State
	// Says is what happened, in a line.
	Says string
	// Free: the step needs no fault and no user, so it happens sooner or later.
	Free bool
	// Later: the step waits for a time, such as a backoff.
	Later bool
	// Local: no other program can notice the step, so nothing else is explored before it.
	Local bool
	// Program is the number of the program that takes the step. Former: its former leader does.
	Program int
	Former  bool
	// Effect is what an actor changed, nil for nothing that has rules.
	Effect *check.Step
	// Plain is the state after the effect alone, without what the admission policy added to
	// the write; nil for After.
	Plain *State
	// Stuck is why a program cannot go on, "" if it can.
	Stuck string
}

// steps returns every step that can follow the state.
func (w *world) steps(s *State) ([]Step, error) {
	all, forced, err := w.programSteps(s)
	if forced || err != nil {
		return all, err
	}
	delayed, err := w.delayedSteps(s)
	if err != nil {
		return nil, err
	}
	all = append(all, w.scheduled(s, -1, append(delayed, w.userSteps(s)...))...)
	return append(all, w.restores(s)...), nil
}

// programSteps returns the steps of the programs. They are forced if nothing else is explored
// before them.
func (w *world) programSteps(s *State) (all []Step, forced bool, err error) {
	for i := range w.config.Programs {
		mine, err := w.stepsOf(s, i)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", w.config.Programs[i].Name, err)
		}
		if len(mine) > 0 && !slices.ContainsFunc(mine, func(step Step) bool { return !step.Local }) {
			return mine, true, nil
		}
		all = append(all, w.scheduled(s, i, mine)...)
	}
	return all, false, nil
}

// stepsOf returns the steps of one program and of its former leader.
func (w *world) stepsOf(s *State, i int) ([]Step, error) {
	var all []Step
	for n, add := range []func(*State, int) ([]Step, error){
		w.cacheSteps, w.passes, w.starts, w.answers, w.formerAnswers, w.ends, w.waits,
	} {
		steps, err := add(s, i)
		if err != nil {
			return nil, err
		}
		if n < 2 && slices.ContainsFunc(steps, func(step Step) bool { return step.Local }) {
			return slices.DeleteFunc(steps, func(step Step) bool { return !step.Local }), nil
		}
		all = append(all, steps...)
	}
	return all, nil
}

// scheduled drops the steps that would interrupt the pass of another program once too often, and
// records whose pass goes on. An interrupted pass goes on at any time between the passes of others.
func (w *world) scheduled(s *State, program int, steps []Step) []Step {
	if s.interruptions < 0 {
		return steps
	}
	interrupts := s.current > 0 && int(s.current-1) != program
	if interrupts && s.interruptions == 0 {
		return nil
	}
	for i := range steps {
		after := steps[i].After.clone()
		if after.current = 0; program >= 0 && w.local(after, program).Busy {
			after.current = int8(program + 1)
		}
		if interrupts {
			after.interruptions--
		}
		steps[i].After = after
	}
	return steps
}

// userSteps returns what users can still do.
func (w *world) userSteps(s *State) []Step {
	var all []Step
	for i := range w.config.Users {
		if step, possible := w.userStep(s, i); possible {
			all = append(all, step)
		}
	}
	return all
}

// userStep returns what a user does; false if it is impossible.
func (w *world) userStep(s *State, i int) (Step, bool) {
	action := w.config.Users[i]
	if s.done&(1<<i) != 0 || w.config.Ordered && s.done != 1<<i-1 {
		return Step{}, false
	}
	request, possible := action.Request(w.cluster(s))
	if !possible {
		return Step{}, false
	}
	after, result, err := w.serve(s, request)
	if err != nil || result.response.Code >= http.StatusBadRequest {
		return Step{}, false
	}
	after = after.clone()
	after.done |= 1 << i
	if action.Disk != "" {
		after.disks = union(after.disks, w.internDisk(disk{handle: action.Disk}))
	}
	w.giveUpDeleted(s, after)
	if action.GivesUp {
		after.givenUp = w.givenUp(s, after.givenUp, request)
	}
	return Step{After: after, Says: action.Says, Free: action.Certain}, true
}

// move returns the state after a process took an input.
func (w *world) move(s *State, i int, former bool, input process.Input, text string) (*State, string, error) {
	after := s.clone()
	from := &after.instances[i].local
	if former {
		from = &after.instances[i].former
	}
	next, err := w.machines[i].Next(*from, input, text)
	if err != nil {
		return nil, "", err
	}
	*from = next
	w.settle(after, i)
	return after, w.machines[i].Local(next).Stuck, nil
}

// settle changes the state for what a program has ended.
func (w *world) settle(s *State, i int) {
	here := &s.instances[i]
	former := w.machines[i].Local(here.former)
	if goesOn := former.Busy || len(former.Calls) > 0; here.former != process.Off &&
		(former.Ended || former.Stuck != "" || !goesOn) {
		here.former = process.Off // it starts nothing any more
	}
	if w.local(s, i).Ended {
		*s = *w.stopped(s, i)
	}
	for _, former := range []bool{false, true} {
		w.settleBasis(s, i, former)
	}
}

// settleBasis changes what the steps of a process rest on.
func (w *world) settleBasis(s *State, i int, former bool) {
	now, here := s.instances[i].process(former)
	local := w.machines[i].Local(now)
	if !local.Busy {
		here.read = nil
	}
	calls := openCalls(local)
	switch {
	case len(calls) == 0 || s.interruptions == 0 && !w.config.FormerLeaders:
		here.sent = nil
	case len(here.sent) == 0:
		here.sent = s.objects
	}
}
