package model

import (
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// Result is what an exploration found.
type Result struct {
	explore.Result

	Config string
	// Locals are the states of the single programs, Replays how often their controllers were run.
	Locals, Replays int
	Took            time.Duration
	// Bounded: the exploration ended at the number of states of the configuration.
	Bounded bool
	// Err is what ended the exploration, nil for nothing.
	Err error
	// Unneeded are the excuses of the configuration that no violation needed.
	Unneeded []Excuse
}

// packed is a world whose states are kept as their keys, which take little memory.
type packed struct {
	*world
	// needed are the numbers of the excuses that were needed.
	needed map[int]bool
}

func (p packed) Initial() string { return p.initial().key() }

func (p packed) Key(state string) string { return state }

func (p packed) unpack(state string) *State { return parse(state, len(p.config.Programs)) }

// Steps returns the steps that can follow the state.
func (p packed) Steps(state string) ([]explore.Step[string], error) {
	s := p.unpack(state)
	steps, err := p.steps(s)
	if err != nil {
		return nil, err
	}
	all := make([]explore.Step[string], 0, len(steps))
	for _, step := range steps {
		found, ends := p.unexcusedStep(s, step, p.needed)
		next := explore.Step[string]{Says: step.Says, Free: step.Free, Broken: found, Ends: ends}
		if !ends {
			next.After = step.After.key()
		}
		all = append(all, next)
	}
	return all, nil
}

// AtRest returns what is wrong with a state in which the world comes to rest.
func (p packed) AtRest(state string, _ bool) []explore.Finding {
	return p.unexcused(p.resting(p.unpack(state)), p.needed)
}

// Explore explores a configuration breadth-first, so that every story is a shortest one. It
// is called within a bubble of testing/synctest.
func (l *Lab) Explore(config Config, limits explore.Limits) (Result, error) {
	defer mutant.Suspend()()
	w, err := newWorld(l, config)
	if err != nil {
		return Result{}, err
	}
	p := packed{world: w, needed: map[int]bool{}}
	if config.UntilExcused {
		limits.Enough = func() bool { return len(p.needed) == len(config.Excused) }
	}
	if limits.Partial = config.Partial; config.States > 0 && (limits.States == 0 || config.States < limits.States) {
		limits.States = config.States
	}
	found, err := explore.Run(p, limits)
	result := Result{Result: found, Config: config.Name, Bounded: config.States > 0 && found.States > config.States}
	if err != nil {
		return result, fmt.Errorf("%s, %w", config.Name, err)
	}
	if found.Complete && !config.Partial || config.UntilExcused {
		result.Unneeded = config.unneeded(p.needed)
	}
	for _, program := range config.Programs {
		machine := l.machines[program.machine()]
		result.Locals += machine.Size()
		result.Replays += machine.Replays
	}
	return result, nil
}
