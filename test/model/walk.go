package model

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// Kind is what disturbs a walk.
type Kind string

// The kinds of disturbances. Everything else happens by itself.
const (
	User        Kind = "user"
	Interrupt   Kind = "interrupt"
	Crash       Kind = "crash"
	Lose        Kind = "lose"
	Fail        Kind = "fail"
	Deny        Kind = "deny"
	Undo        Kind = "undo"
	Stall       Kind = "stall"
	Hour        Kind = "hour"
	WrongAnswer Kind = "wrong answer"
	Switch      Kind = "switch"
	OldList     Kind = "old list"
	Backup      Kind = "backup"
	Restore     Kind = "restore"
)

// Disturbance is a disturbance after so many steps without one. Pick selects one of those that
// are possible.
type Disturbance struct {
	After int
	Kind  Kind
	Pick  int
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

// Walker walks through a world, and never goes back.
type Walker struct {
	*world
	programs []*process.Forward
	state    *State
	// seed decides which of the possible steps comes next, taken how often a step was taken.
	seed  uint64
	taken map[string]uint64
	clock time.Time
	story []string
	// Rules are the rules that end the walk, nil for all.
	Rules []string
	// Steps counts the steps.
	Steps int
	// Violation is what the walk ended with, nil for nothing wrong.
	Violation *explore.Violation
}

// NewWalker returns a walker at the start of the world. It is used within a bubble of
// testing/synctest, with a lab of its own.
func (l *Lab) NewWalker(config Config, seed uint64) (*Walker, error) {
	config.Eager = false // what a pass does is known only once it is taken
	w := &Walker{world: &world{Lab: l, config: config}, seed: seed, taken: map[string]uint64{}, clock: time.Now()}
	for _, program := range config.Programs {
		forward, err := process.NewForward(program.Build)
		if err != nil {
			return nil, err
		}
		w.programs, w.machines = append(w.programs, forward), append(w.machines, forward)
	}
	w.state = w.initial()
	return w, nil
}

// Close ends all processes.
func (w *Walker) Close() {
	for _, program := range w.programs {
		program.Keep()
	}
}

// isOver reports whether a rule is broken.
func (w *Walker) isOver() bool { return w.Violation != nil }

func (w *Walker) fail(f explore.Finding) {
	if w.Violation == nil && (w.Rules == nil || slices.Contains(w.Rules, f.Rule)) {
		w.Violation = &explore.Violation{Finding: f, Story: w.story}
	}
}

// marks precede the lines of a story; true for what happens by itself.
var marks = map[bool]string{true: "  ", false: "! "}

// Disturb walks until the disturbance has happened, or turns out to be impossible for long. It reports
// whether nothing was wrong.
func (w *Walker) Disturb(d Disturbance) bool {
	if err := w.disturb(d); err != nil {
		w.fail(explore.Finding{Rule: "Error", Sentence: err.Error()})
	}
	return !w.isOver()
}

func (w *Walker) disturb(d Disturbance) error {
	for range d.After {
		if err := w.goOn(); err != nil || w.isOver() {
			return err
		}
	}
	if d.Kind == OldList { // only a program that starts makes a list
		if _, err := w.try(Disturbance{Kind: Crash, Pick: d.Pick}); err != nil || w.isOver() {
			return err
		}
	}
	for range patience {
		done, err := w.try(d)
		if err == nil && !done {
			err = w.goOn()
		}
		if done || err != nil || w.isOver() {
			return err
		}
	}
	return nil
}

// goOn takes a step that happens by itself, if there is one.
func (w *Walker) goOn() error {
	steps, _, err := w.stepsOfKind("")
	if err != nil || len(steps) == 0 {
		return err
	}
	return w.take(slices.MinFunc(steps, func(a, b Step) int { return cmp.Compare(w.rank(a), w.rank(b)) }))
}

// rank returns a number that depends only on the seed, the step, and how often it was taken: a walk
// with a step less is as similar as possible. A step that waits for a time seldom comes first.
func (w *Walker) rank(step Step) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, w.taken[step.Says], step.Says)
	if step.Later {
		return h.Sum64() | 0xf<<60
	}
	return h.Sum64()
}

// try takes a step of the disturbance. It reports whether there is one.
func (w *Walker) try(d Disturbance) (bool, error) {
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
func (w *Walker) stepsOfKind(kind Kind) (steps []Step, forced bool, err error) {
	steps, forced, err = w.programSteps(w.state)
	steps = append(steps, w.restores(w.state)...)
	return slices.DeleteFunc(steps, func(step Step) bool { return w.kindOf(step) != kind }), forced, err
}

// isWaiting reports whether a program waits for an answer.
func (w *Walker) isWaiting() bool {
	return w.isSending() ||
		slices.ContainsFunc(w.state.instances, func(i instance) bool { return i.former != process.Off })
}

// tryUser takes the action of a user with the number, or the next possible one.
func (w *Walker) tryUser(pick int) (bool, error) {
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
func (w *Walker) kindOf(step Step) Kind {
	now, after := w.state, step.After
	switch {
	case after.crashes < now.crashes:
		return Crash
	case after.losses < now.losses:
		return Lose
	case after.errors < now.errors:
		return Fail
	case after.denials < now.denials:
		return Deny
	case after.undos < now.undos:
		return Undo
	case after.stalls < now.stalls:
		return Stall
	case after.hours < now.hours:
		return Hour
	case after.wrongAnswers < now.wrongAnswers:
		return WrongAnswer
	case after.switches < now.switches:
		return Switch
	case after.restores < now.restores:
		return Restore
	case after.backups < now.backups:
		return Backup
	case after.oldLists < now.oldLists:
		return OldList
	case after.interruptions < now.interruptions:
		return Interrupt
	}
	return ""
}

// take takes a step, and checks it.
func (w *Walker) take(step Step) error {
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
	w.Steps++
	w.story = append(w.story, marks[step.Free]+step.Says)
	w.taken[step.Says]++
	for _, f := range w.broken(before, step) {
		w.fail(f)
	}
	for i, program := range w.programs {
		program.Keep(after.instances[i].local, after.instances[i].former)
	}
	return nil
}

// pass lets time pass, until a program sends a call: no call waits for hours.
func (w *Walker) pass(seconds int) {
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end) && !w.isSending(); {
		<-time.After(min(timeSlice, time.Until(end)))
		w.refresh()
	}
}

func (w *Walker) isSending() bool {
	return slices.ContainsFunc(w.programs, (*process.Forward).IsSending)
}

// refresh lets all programs do what the time that has passed makes them do.
func (w *Walker) refresh() {
	for now := time.Now(); now.After(w.clock); now = time.Now() {
		w.clock = now
		for _, program := range w.programs {
			program.Refresh()
		}
	}
}

// Rest lets the world come to rest without faults: all that happens by itself happens in turn,
// until nothing has an effect any more. It reports whether nothing was wrong.
func (w *Walker) Rest() bool {
	if err := w.rest(); err != nil {
		w.fail(explore.Finding{Rule: "Error", Sentence: err.Error()})
	}
	return !w.isOver()
}

func (w *Walker) rest() error {
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
			for _, f := range w.unexcused(w.resting(w.state), map[int]bool{}) {
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
	w.fail(explore.Finding{
		Rule: "Restless", Sentence: fmt.Sprintf("the world does not come to rest within %d steps", restSteps),
	})
	return nil
}

// endFaults leaves no fault to come, and keeps which ones there were.
func (w *Walker) endFaults() {
	s := w.state.clone()
	w.config.Crashes -= int(s.crashes)
	w.config.Losses -= int(s.losses)
	w.config.Errors -= int(s.errors)
	w.config.Denials -= int(s.denials)
	w.config.Undos -= int(s.undos)
	w.config.WrongAnswers -= int(s.wrongAnswers)
	w.config.Switches -= int(s.switches)
	w.config.Restores -= int(s.restores)
	s.crashes, s.losses, s.errors, s.hours, s.wrongAnswers, s.switches, s.interruptions, s.stalls, s.oldLists = 0, 0, 0,
		0, 0, 0, 0, 0, 0
	s.denials, s.undos, s.restores, s.backups, s.backup = 0, 0, 0, 0, nil
	w.state = s
}

// seldomest returns the number of the step that was taken least often, -1 for none.
func (w *Walker) seldomest(steps []Step, taken map[string]int) int {
	next := -1
	for i, step := range steps {
		if next < 0 || taken[step.Says] < taken[steps[next].Says] {
			next = i
		}
	}
	return next
}
