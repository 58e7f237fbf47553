package garbage

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// List is a list of one kind.
type List struct {
	Kind    int
	Objects []*Object
	Version int
}

// Input is what happens to a collector. One field is set.
type Input struct {
	// Start starts it with these lists.
	Start []List
	// See delivers an event, Relist a list in the place of all events, Bookmark the version of a kind.
	See              *Event
	Relist, Bookmark *List
	// Judge has a worker judge the object.
	Judge types.UID
	// Begin has a barrier or a search for cycles begin.
	Begin Pass
	// Answer answers the call with the number Call.
	Answer *Answer
	Call   int
	// Seconds pass.
	Seconds int
}

// text identifies the input.
func (i Input) text() string {
	var out strings.Builder
	list := func(l List) {
		fmt.Fprintf(&out, "%d@%d:", l.Kind, l.Version)
		for _, o := range l.Objects {
			o.text(&out)
		}
	}
	switch {
	case i.Start != nil:
		out.WriteString("start ")
		for _, l := range i.Start {
			list(l)
		}
	case i.See != nil:
		fmt.Fprintf(&out, "see %t %d ", i.See.Deleted, i.See.Version)
		i.See.Object.text(&out)
	case i.Relist != nil:
		out.WriteString("relist ")
		list(*i.Relist)
	case i.Bookmark != nil:
		fmt.Fprintf(&out, "bookmark %d@%d", i.Bookmark.Kind, i.Bookmark.Version)
	case i.Judge != "":
		fmt.Fprintf(&out, "judge %s", i.Judge)
	case i.Answer != nil:
		fmt.Fprintf(&out, "answer %d %s", i.Call, i.Answer)
	case i.Seconds > 0:
		fmt.Fprintf(&out, "pass %d", i.Seconds)
	default:
		fmt.Fprintf(&out, "begin %d", i.Begin)
	}
	return out.String()
}

// take gives the actor an input.
func (a *actor) take(i Input) error {
	var err error
	switch {
	case i.Start != nil:
		for _, l := range i.Start {
			if err = a.list(l.Kind, l.Objects, l.Version); err != nil {
				return err
			}
		}
		a.collector.Begin()
	case i.See != nil:
		err = a.see(*i.See)
	case i.Relist != nil:
		err = a.list(i.Relist.Kind, i.Relist.Objects, i.Relist.Version)
	case i.Bookmark != nil:
		a.collector.Feed(i.Bookmark.Kind).UpdateResourceVersion(a.config.Kinds[i.Bookmark.Kind].version(i.Bookmark.Version))
	case i.Judge != "":
		a.work(i.Judge)
	case i.Answer != nil:
		w := a.waiting[i.Call]
		a.waiting = slices.Delete(a.waiting, i.Call, i.Call+1)
		w.answer <- *i.Answer
	case i.Seconds > 0:
		a.clock.Step(time.Duration(i.Seconds) * time.Second)
		a.queue.elapse()
	case i.Begin == Barrier:
		a.pass(Barrier, a.collector.RunBarrier)
	case i.Begin == Cycles:
		a.pass(Cycles, a.collector.ReleaseCycles)
	}
	if err != nil {
		return err
	}
	return a.settle()
}

// served returns the deletions that a barrier is to serve, "" if none begins.
func (a *actor) served(i Input) string {
	if i.text() != (Input{Begin: Barrier}).text() {
		return ""
	}
	return fmt.Sprint(a.collector.Pending())
}

// Local is what is known of one state of a collector.
type Local struct {
	Calls []Call
	// Ages are the seconds since the calls were sent.
	Ages       []int
	Due, Later []types.UID
	Working    [passes]bool
	// AwaitsBarrier and AwaitsCycles: a pass may begin.
	AwaitsBarrier, AwaitsCycles bool
	// Ended: the collector takes what it read for that of a restored etcd.
	Ended bool
	// Failed is why the collector cannot go on, "" if it can.
	Failed string

	before int
	input  Input
	// memory is a digest of all that the collector remembers; past has, for each pass that has not
	// ended, a digest of what it may have read.
	memory [2]uint64
	past   [passes][2]uint64
}

// Machine runs a collector, and remembers its states.
type Machine struct {
	config  *Config
	writer  rest.Interface
	states  []Local
	byPrint map[[2]uint64]int
	next    map[way]int
	idle    map[int]*actor
	order   []int
	// Replays counts the collectors that were run, Inputs what they were given.
	Replays, Inputs int
}

type way struct {
	state int
	input [2]uint64
}

func newMachine(config *Config) (*Machine, error) {
	writer, err := newWriter(config)
	if err != nil {
		return nil, err
	}
	return &Machine{
		config: config, writer: writer, states: make([]Local, 1), byPrint: map[[2]uint64]int{}, next: map[way]int{},
		idle: map[int]*actor{},
	}, nil
}

// Next returns the state after the input.
func (m *Machine) Next(state int, input Input) (int, error) {
	at := way{state, digest(input.text())}
	if next, known := m.next[at]; known {
		return next, nil
	}
	a, err := m.actorIn(state)
	if err != nil {
		return 0, err
	}
	m.Inputs++
	served := a.served(input)
	next := m.record(a, state, input, served, a.take(input))
	m.next[at] = next
	m.keep(next, a)
	return next, nil
}

// ErrNotRepeated: a collector that got the same inputs again did something else.
var ErrNotRepeated = errors.New("the collector does something else when it gets the same inputs again")

// maxIdle bounds the collectors that are kept for another input.
const maxIdle = 1000

func (m *Machine) keep(state int, a *actor) {
	if former := m.idle[state]; former != nil {
		a.end()
		return
	}
	m.idle[state] = a
	m.order = append(m.order, state)
	for len(m.order) > maxIdle {
		if oldest := m.idle[m.order[0]]; oldest != nil {
			oldest.end()
			delete(m.idle, m.order[0])
		}
		m.order = m.order[1:]
	}
}

// actorIn returns a collector in the state.
func (m *Machine) actorIn(state int) (*actor, error) {
	if a := m.idle[state]; a != nil {
		delete(m.idle, state)
		return a, nil
	}
	var inputs []Input
	for s := state; s != 0; s = m.states[s].before {
		inputs = append(inputs, m.states[s].input)
	}
	m.Replays++
	a := newActor(m.config, m.writer)
	for i := range inputs {
		m.Inputs++
		if err := a.take(inputs[len(inputs)-1-i]); err != nil {
			return nil, fmt.Errorf("repeat %s: %w", inputs[len(inputs)-1-i].text(), err)
		}
	}
	if state != 0 &&
		!slices.EqualFunc(a.waiting, m.states[state].Calls, func(w waiting, c Call) bool { return w.call == c }) {
		return nil, fmt.Errorf("%w: it sends %v instead of %v", ErrNotRepeated, a.waiting, m.states[state].Calls)
	}
	return a, nil
}

// record returns the number of the state of the actor.
func (m *Machine) record(a *actor, before int, input Input, served string, failed error) int {
	l := Local{before: before, input: input, Working: a.working}
	for _, w := range a.waiting {
		l.Calls = append(l.Calls, w.call)
		l.Ages = append(l.Ages, min(longAgo, int(a.clock.Since(w.sent)/time.Second)))
	}
	l.Due, l.Later = a.queue.list()
	l.AwaitsBarrier = a.collector.AwaitsBarrier() && !a.working[Barrier]
	l.AwaitsCycles = a.collector.AwaitsCycles() && !a.working[Cycles]
	l.Ended = a.collector.HasEnded()
	if failed != nil {
		l.Failed = failed.Error()
	}
	l.memory = digest(a.print())
	l.past = m.past(&l, served)
	identity := digest(fmt.Sprint(
		l.memory, l.Calls, l.Ages, l.Due, l.Later, l.Working, l.past, l.Failed, l.Ended, a.collector.AwaitsCycles(),
	))
	if known, found := m.byPrint[identity]; found {
		return known
	}
	m.states = append(m.states, l)
	m.byPrint[identity] = len(m.states) - 1
	return len(m.states) - 1
}

// past returns the digests of the passes that have not ended. A pass depends on what it found when
// it began, on each answer, and on what it found at that moment; a barrier keeps all that it
// learned in the memory of the collector, but for the deletions that it serves.
func (m *Machine) past(l *Local, served string) [passes][2]uint64 {
	from := &m.states[l.before]
	past := from.past
	for p := range passes {
		switch {
		case !l.Working[p]:
			past[p] = [2]uint64{}
		case !from.Working[p] && p == Barrier:
			past[p] = digest(served)
		case !from.Working[p]:
			past[p] = digest(fmt.Sprint(from.memory, l.input.text()))
		case l.input.Answer != nil && from.Calls[l.input.Call].Pass == p && p != Barrier:
			past[p] = digest(fmt.Sprint(past[p], from.memory, l.input.text()))
		}
	}
	return past
}

// Close ends all collectors.
func (m *Machine) Close() {
	for _, a := range m.idle {
		a.end()
	}
	m.idle, m.order = map[int]*actor{}, nil
}

var seed = maphash.MakeSeed()

func digest(text string) [2]uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(text) // never fails
	first := h.Sum64()
	_ = h.WriteByte(1)
	return [2]uint64{first, h.Sum64()}
}
