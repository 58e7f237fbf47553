package process

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/test/model/mutant"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// State numbers a state of a program in its [Machine].
type State int32

// Input is what happens to a program from outside. Exactly one field is set, beside Listed.
type Input struct {
	// Start starts the program with these objects in its caches.
	Start *Start
	// See lets a cache see a version of an object, with an empty JSON for its deletion.
	See *server.Object
	// Listed: a list, not the watch, shows the object of See.
	Listed bool
	// Reconcile starts a pass of a loop.
	Reconcile *Key
	// Answer answers a call.
	Answer *Answered
	// Seconds lets so many seconds pass.
	Seconds int
}

// Start is how a program starts.
type Start struct {
	Options
	Listed []server.Object
}

// Key is a key in the queue of a loop.
type Key struct {
	Loop int
	Key  string
	// Later: the key waits for a time.
	Later bool
}

// Answered is the answer to the call with the number.
type Answered struct {
	Call int
	Answer
}

// Local is what a [Machine] knows of one state.
type Local struct {
	// Calls are the calls that wait for an answer.
	Calls []Call
	// Busy: a pass has not ended. Working are the loops of such passes.
	Busy    bool
	Working []int
	// Keys are the keys in the queues.
	Keys []Key
	// Pending: the program does something when time passes.
	Pending bool
	// Ended: the program has ended itself.
	Ended bool
	// Stuck is why the program cannot go on, "" if it can.
	Stuck string

	before State
	input  Input
	// print is the digest of the memory, caches and queues; past has, for each pass that has not
	// ended, a digest of what it read and which answers it got.
	print [2]uint64
	past  map[int][2]uint64
	// senders are the loops that sent the calls.
	senders []int
}

// Machine runs one program and remembers its states. Two states are the same if the program
// remembers, caches and queues the same; a state within a pass is known by what went before.
type Machine struct {
	build  Build
	client kubernetes.Interface
	states []Local
	// byPrint finds states between passes; next finds the state after an input.
	byPrint map[[2]uint64]State
	next    map[edge]State
	// texts has one copy of each text of a call.
	texts map[string]string
	loops []string
	idle  pool
	// Concurrent: passes of several loops go on at the same time, so that states within a pass
	// are compared too.
	Concurrent bool
	// Replays counts how often the program was run, Steps the inputs that it was given.
	Replays, Steps int
}

// NewMachine returns the machine of a program. It is used within a bubble of testing/synctest.
func NewMachine(build Build) (*Machine, error) {
	client, err := newClient()
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Machine{
		build: build, client: client, states: make([]Local, 1), byPrint: map[[2]uint64]State{}, next: map[edge]State{},
		texts: map[string]string{}, idle: pool{actors: map[State]pooled{}},
	}, nil
}

// Off is the state of a program that does not run.
const Off State = 0

// Local returns what is known of the state.
func (m *Machine) Local(state State) *Local { return &m.states[state] }

// Size returns the number of states.
func (m *Machine) Size() int { return len(m.states) }

// Next returns the state after the input. The text identifies the input: equal texts are equal
// inputs.
func (m *Machine) Next(state State, input Input, text string) (State, error) {
	way := edge{state, digest(text)}
	if next, known := m.next[way]; known {
		return next, nil
	}
	next, err := m.run(state, input)
	if err != nil {
		return Off, fmt.Errorf("input %q: %w", text, err)
	}
	m.next[way] = next
	return next, nil
}

// edge is an input in a state, by the digest of its text.
type edge struct {
	state State
	text  [2]uint64
}

// run gives the program the input in the state, and records the state after it.
func (m *Machine) run(state State, input Input) (State, error) {
	defer mutant.Resume()()
	a, err := m.actorIn(state, input)
	if err != nil {
		return Off, err
	}
	m.Steps++
	began := time.Now()
	err = a.take(input)
	if time.Since(began) > poolAge {
		m.idle.end()
	}
	next := m.record(a, state, input, err)
	m.idle.put(next, a)
	return next, nil
}

// actorIn returns an actor in the state: one that is there, or a new one that repeats what led
// to the state.
func (m *Machine) actorIn(state State, input Input) (*actor, error) {
	if a := m.idle.take(state); a != nil {
		return a, nil
	}
	var way []State
	for s := state; s != Off; s = m.states[s].before {
		way = append(way, s)
	}
	slices.Reverse(way)
	first := input
	if len(way) > 0 {
		first = m.states[way[0]].input
	}
	if first.Start == nil {
		return nil, errors.New("the program does not run")
	}
	m.Replays++
	m.Steps += len(way)
	a, err := newActor(m.build, m.client, first.Start.Options)
	if err != nil {
		return nil, err
	}
	for _, s := range way {
		if err := m.repeat(a, s); err != nil {
			a.end()
			return nil, fmt.Errorf("repeat %s: %w", m.states[s].input, err)
		}
	}
	return a, nil
}

// ErrNotRepeated: a program that got the same inputs again did something else. No state of such a
// program can be returned to.
var ErrNotRepeated = errors.New("the program does something else when it gets the same inputs again")

// repeat gives the actor the input that once led to the state.
func (m *Machine) repeat(a *actor, state State) error {
	if err := a.take(m.states[state].input); err != nil {
		return err
	}
	sent := slices.EqualFunc(a.waiting, m.states[state].Calls, func(w waiting, call Call) bool { return w.call == call })
	if !sent {
		return fmt.Errorf(
			"%w: it waits for %d answers instead of %d, or for others", ErrNotRepeated, len(a.waiting),
			len(m.states[state].Calls),
		)
	}
	return nil
}

// Close ends all actors. The machine is not used any more.
func (m *Machine) Close() { m.idle.end() }

// record returns the number of the state that the actor is in.
func (m *Machine) record(a *actor, before State, input Input, stuck error) State {
	local := a.local()
	for i := range local.Calls {
		call := &local.Calls[i]
		call.Request.Body, call.Request.Path, call.Message = m.one(call.Request.Body), m.one(call.Request.Path),
			m.one(call.Message)
	}
	local.before, local.input = before, input
	if stuck != nil {
		local.Stuck = stuck.Error()
	}
	if m.loops == nil {
		for _, loop := range a.program.Loops {
			m.loops = append(m.loops, loop.Name())
		}
	}
	var sum [2]uint64
	idle := stuck == nil && (m.Concurrent || !local.Busy && len(local.Calls) == 0)
	if idle {
		local.print = digest(a.fingerprint())
		local.past = m.past(a, before, input)
		sum = local.identity()
		if known, found := m.byPrint[sum]; found {
			return known
		}
	}
	m.states = append(m.states, local)
	state := State(len(m.states) - 1)
	if idle {
		m.byPrint[sum] = state
	}
	return state
}

// one returns one copy of equal texts.
func (m *Machine) one(text string) string {
	if first, known := m.texts[text]; known {
		return first
	}
	m.texts[text] = text
	return text
}

// local returns what is known of the state that the actor is in.
func (a *actor) local() Local {
	local := Local{Ended: a.ended, Busy: len(a.working) > 0, Working: slices.Clone(a.working)}
	if a.program.Pending != nil {
		local.Pending = a.program.Pending()
	}
	for _, w := range a.waiting {
		local.Calls = append(local.Calls, w.call)
		local.senders = append(local.senders, w.loop)
	}
	for i, loop := range a.program.Loops {
		due, later := loop.Keys()
		for _, key := range due {
			local.Keys = append(local.Keys, Key{Loop: i, Key: key})
		}
		for _, key := range later {
			local.Keys = append(local.Keys, Key{Loop: i, Key: key, Later: true})
		}
	}
	return local
}

// Loop returns the name of a loop.
func (m *Machine) Loop(number int) string { return at(m.loops, number) }

func at(names []string, number int) string {
	if number < len(names) {
		return names[number]
	}
	return fmt.Sprint(number)
}

// History returns the inputs that led to a state, one line each.
func (m *Machine) History(state State) string {
	var lines []string
	for s := state; s != Off; s = m.states[s].before {
		lines = append(lines, m.states[s].input.String())
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
