package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/internal/model/process"
)

// Kind is what disturbs a walk.
type Kind string

// The kinds of disturbances. Everything else happens by itself.
const (
	User      Kind = "user"
	Interrupt Kind = "interrupt"
	Crash     Kind = "crash"
	Lose      Kind = "lose"
	Fail      Kind = "fail"
	Stall     Kind = "stall"
	Hour      Kind = "hour"
)

// Disturbance is a disturbance after so many steps without one. Pick selects one of those that
// are possible.
type Disturbance struct {
	After int
	Kind  Kind
	Pick  int
}

// Walk is one way through a world: the seed decides what happens by itself.
type Walk struct {
	Seed         uint64
	Disturbances []Disturbance
}

// Walked is how a walk went.
type Walked struct {
	Steps int
	// Violation is what the walk ended with, nil for nothing wrong.
	Violation *Violation
}

// Limits of a walk.
const (
	// patience is for how many steps a disturbance waits until it is possible.
	patience = 100
	// rounds is how often all that can be repeated is repeated without an effect before the
	// world counts as being at rest.
	rounds = 4
	// timeSlice is for how long time passes before the programs may send calls.
	timeSlice = 5 * time.Second
	// restSteps is within how many steps the world has to come to rest.
	restSteps = 20_000
)

// walker walks through the states of a world, and never goes back.
type walker struct {
	*world
	programs []*process.Forward
	state    *State
	random   *rand.Rand
	walked   Walked
	story    []string
	clock    time.Time
}

// Walk goes one way through the world of the configuration, and then lets the world come to
// rest without faults. It is called within a bubble of testing/synctest, with a lab of its own.
func (l *Lab) Walk(config Config, walk Walk) (Walked, error) {
	config.Eager = false // what a pass does is known only once it is taken
	w := &walker{world: &world{Lab: l, config: config}, random: rand.New(rand.NewPCG(walk.Seed, 0)), clock: time.Now()}
	for _, program := range config.Programs {
		forward, err := process.NewForward(program.Build)
		if err != nil {
			return Walked{}, err
		}
		defer forward.Keep()
		w.programs, w.machines = append(w.programs, forward), append(w.machines, forward)
	}
	w.state = w.initial()
	err := w.disturb(walk.Disturbances)
	if err == nil && !w.isOver() {
		err = w.rest()
	}
	if err != nil {
		w.fail(finding{rule: "Error", sentence: err.Error()})
	}
	return w.walked, nil
}

// isOver reports whether a rule is broken.
func (w *walker) isOver() bool { return w.walked.Violation != nil }

func (w *walker) fail(f finding) {
	if w.walked.Violation == nil {
		w.walked.Violation = &Violation{Rule: f.rule, Sentence: f.sentence, Story: w.story}
	}
}

// disturb walks along the disturbances.
func (w *walker) disturb(all []Disturbance) error {
	for _, d := range all {
		for range d.After {
			if err := w.goOn(); err != nil || w.isOver() {
				return err
			}
		}
		for range patience {
			done, err := w.try(d)
			if err == nil && !done {
				err = w.goOn()
			}
			if err != nil || w.isOver() {
				return err
			}
			if done {
				break
			}
		}
	}
	return nil
}

// goOn takes a step that happens by itself, if there is one.
func (w *walker) goOn() error {
	steps, _, err := w.stepsOfKind("")
	if err != nil || len(steps) == 0 {
		return err
	}
	return w.take(steps[w.random.IntN(len(steps))])
}

// try takes a step of the disturbance. It reports whether there is one.
func (w *walker) try(d Disturbance) (bool, error) {
	steps, forced, err := w.stepsOfKind(d.Kind)
	switch {
	case err != nil:
		return false, err
	case d.Kind == User && !forced:
		return w.tryUser(d.Pick)
	case len(steps) == 0 || d.Kind == Hour && w.isWaiting():
		return false, nil
	}
	return true, w.take(steps[d.Pick%len(steps)])
}

// stepsOfKind returns the steps of the programs that are of the kind.
func (w *walker) stepsOfKind(kind Kind) (steps []Step, forced bool, err error) {
	steps, forced, err = w.programSteps(w.state)
	return slices.DeleteFunc(steps, func(step Step) bool { return w.kindOf(step) != kind }), forced, err
}

// isWaiting reports whether a program waits for an answer.
func (w *walker) isWaiting() bool {
	return w.isSending() || slices.ContainsFunc(w.state.instances, func(i instance) bool { return i.former != process.Off })
}

// tryUser takes the action of a user with the number, or the next possible one.
func (w *walker) tryUser(pick int) (bool, error) {
	for n := range w.config.Users {
		i := (pick + n) % len(w.config.Users)
		step, possible := w.userStep(w.state, i)
		if !possible {
			continue
		}
		steps := w.scheduled(w.state, -1, []Step{step})
		if len(steps) == 0 {
			return false, nil
		}
		steps[0].After.done = 0 // a user does it as often as possible
		return true, w.take(steps[0])
	}
	return false, nil
}

// kindOf returns what disturbance the step of a program is, "" for what happens by itself.
func (w *walker) kindOf(step Step) Kind {
	now, after := w.state, step.After
	switch {
	case after.crashes < now.crashes:
		return Crash
	case after.losses < now.losses:
		return Lose
	case after.errors < now.errors:
		return Fail
	case after.stalls < now.stalls:
		return Stall
	case after.hours < now.hours:
		return Hour
	case after.interruptions < now.interruptions:
		return Interrupt
	}
	return ""
}

// take takes a step, and checks it.
func (w *walker) take(step Step) error {
	before, after := w.state, step.After.clone()
	for i, program := range w.programs {
		for _, state := range []process.State{after.instances[i].local, after.instances[i].former} {
			if !program.IsPromised(state) {
				continue
			}
			if err := program.Take(state, w.pass); err != nil {
				return fmt.Errorf("%s: %w", step.Says, err)
			}
			if state == after.instances[i].local {
				step.Stuck = program.Local(state).Stuck
			}
		}
	}
	w.refresh()
	for i := range w.programs {
		w.settle(after, i)
	}
	if after.current > 0 && !w.local(after, int(after.current)-1).Busy {
		after.current = 0
	}
	step.After, w.state = after, after
	w.walked.Steps++
	w.story = append(w.story, step.Says)
	for _, f := range w.broken(before, step) {
		w.fail(f)
	}
	for i, program := range w.programs {
		program.Keep(after.instances[i].local, after.instances[i].former)
	}
	return nil
}

// pass lets time pass, until a program sends a call: no call waits for hours.
func (w *walker) pass(seconds int) {
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end) && !w.isSending(); {
		<-time.After(min(timeSlice, time.Until(end)))
		w.refresh()
	}
}

func (w *walker) isSending() bool {
	return slices.ContainsFunc(w.programs, (*process.Forward).IsSending)
}

// refresh lets all programs do what the time that has passed makes them do.
func (w *walker) refresh() {
	for now := time.Now(); now.After(w.clock); now = time.Now() {
		w.clock = now
		for _, program := range w.programs {
			program.Refresh()
		}
	}
}

// rest lets the world come to rest without faults: all that happens by itself happens in turn,
// until nothing has an effect any more.
func (w *walker) rest() error {
	w.endFaults()
	taken := map[string]int{}
	for range restSteps {
		steps, forced, err := w.stepsOfKind("")
		if err != nil {
			return err
		}
		idle := !forced && !w.isWaiting() && w.state.current == 0
		if idle {
			w.config.Interruptions = 0 // each pass from now on sees all that was written
		}
		next := w.seldomest(steps, taken)
		if next < 0 || idle && taken[steps[next].Says] >= rounds {
			for _, f := range w.resting(w.state) {
				w.fail(f)
			}
			return nil
		}
		taken[steps[next].Says]++
		before := w.state
		if err := w.take(steps[next]); err != nil || w.isOver() {
			return err
		}
		if !slices.Equal(before.objects, w.state.objects) || !slices.Equal(before.disks, w.state.disks) {
			clear(taken)
		}
	}
	w.fail(finding{rule: "Restless", sentence: fmt.Sprintf("the world does not come to rest within %d steps", restSteps)})
	return nil
}

// endFaults leaves no fault to come, and keeps which ones there were.
func (w *walker) endFaults() {
	s := w.state.clone()
	w.config.Crashes -= int(s.crashes)
	w.config.Losses -= int(s.losses)
	w.config.Errors -= int(s.errors)
	s.crashes, s.losses, s.errors, s.hours, s.interruptions, s.stalls = 0, 0, 0, 0, 0, 0
	w.state = s
}

// seldomest returns the number of the step that was taken least often, -1 for none.
func (w *walker) seldomest(steps []Step, taken map[string]int) int {
	next := -1
	for i, step := range steps {
		if next < 0 || taken[step.Says] < taken[steps[next].Says] {
			next = i
		}
	}
	return next
}
