package garbage

import (
	"fmt"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// Faults are faults that are still to come, and how often.
type Faults struct {
	// Crashes of the collector, and Late writes that arrive after a crash.
	Crashes, Late int8
	// Lost answers: the write took effect. Failed calls did not. Paths are calls whose path the API
	// server does not serve.
	Lost, Failed, Paths int8
	// Denied: an admission webhook denies a write with a code of its own: 403, 404, 409, 410 or 422.
	Denied int8
	// Relists in the place of a watch, StaleStarts by lists of the past, Delayed answers to reads.
	Relists, StaleStarts, Delayed int8
	// Seconds that pass while the collector works.
	Seconds int8
	// Unlisted: a kind cannot be listed for some time. Away: the API server does not answer for some time.
	Unlisted, Away int8
	// Stock are the steps of upstream's collector.
	Stock int8
	// Interruptions of a pass of a worker: others do something before its next call is answered.
	Interruptions int8
}

// Action is what a user does, once.
type Action struct {
	Says string
	// Do changes the state, and returns false if the action is not possible.
	Do func(w *world, s *State) bool
}

// Config is a cluster to explore.
type Config struct {
	Name  string
	Kinds []*Kind
	Slots []Slot
	// OneCounter: one etcd counts the versions of all kinds.
	OneCounter bool
	// Begin fills the cluster.
	Begin  func(w *world, s *State)
	Users  []Action
	Faults Faults
	// Elected: a restore of etcd takes the leader Lease back, too, so that the collector writes nothing after it, and
	// ends.
	Elected bool
	// States bounds the explored states, 0 for all. Then the states at rest are not judged.
	States int
}

// world explores one configuration.
type world struct {
	config  *Config
	machine *Machine
}

// Step is what can happen next.
type Step = explore.Step[*State]

// Initial returns the first state: the collector does not run yet.
func (w *world) Initial() *State {
	s := &State{faults: w.config.Faults}
	for k, kind := range w.config.Kinds {
		s.counters[k] = kind.First
	}
	for i := range s.sinceOrphan {
		s.sinceOrphan[i], s.sinceForeground[i], s.sinceLive[i] = longAgo, longAgo, longAgo
	}
	w.config.Begin(w, s)
	for k := range w.config.Kinds {
		w.show(s, k)
	}
	s.stock = s.objects
	s.backup = s.backUp()
	return s
}

// show shows the collector the kind as it is.
func (w *world) show(s *State, kind int) {
	v := View{version: s.counters[kind]}
	for _, o := range w.listed(s, kind, "") {
		v.shown[o.Slot] = o
	}
	s.views[kind] = v
}

// list returns the view as a list.
func (v *View) list(kind int) List {
	l := List{Kind: kind, Version: v.version}
	for _, o := range v.shown {
		if o != nil {
			l.Objects = append(l.Objects, o)
		}
	}
	return l
}

// create creates an object in the slot.
func (w *world) create(s *State, slot int, o Object) {
	s.incarnations[slot]++
	o.Slot, o.Incarnation = slot, s.incarnations[slot]
	w.commit(s, slot, &o)
}

// Steps returns what can happen next. Nothing is explored behind a step that breaks a rule.
func (w *world) Steps(s *State) ([]Step, error) {
	all, err := w.steps(s)
	for i := range all {
		all[i].Broken = all[i].After.broken
		all[i].Ends = len(all[i].Broken) > 0
	}
	return all, err
}

// steps returns what can happen next. A pass of a worker goes on until its end, unless it is
// interrupted: then others work before its call is answered.
func (w *world) steps(s *State) ([]Step, error) {
	l := &w.machine.states[s.collector]
	if l.Failed != "" {
		return nil, fmt.Errorf("the collector fails: %s", l.Failed)
	}
	if l.Ended {
		after := s.clone()
		after.stop()
		if !s.restored {
			after.broken = []explore.Finding{brokenRule(EndedInVain, "the collector ends, and etcd was not restored")}
		}
		return []Step{{Says: "the collector ends", After: after, Free: true}}, nil
	}
	all := w.crashes(s, l)
	if l.Working[Work] && !s.paused {
		more, err := w.answers(s, l, true)
		if s.faults.Interruptions > 0 {
			after := s.clone()
			after.faults.Interruptions--
			after.paused = true
			more = append(more, Step{Says: "the worker is interrupted", After: after})
		}
		return append(all, more...), err
	}
	for _, more := range []func(*State, *Local) ([]Step, error){
		w.starts, w.cacheSteps, w.begins, w.allAnswers, w.seconds,
	} {
		found, err := more(s, l)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, more := range []func(*State) []Step{w.users, w.lateWrites, w.stockSteps, w.unlisted, w.away, w.termEnds} {
		all = append(all, more(s)...)
	}
	return w.orTime(s, l, all)
}

// orTime lets a second pass if nothing else is to happen, but for a kind that can be listed again.
func (w *world) orTime(s *State, l *Local, all []Step) ([]Step, error) {
	for _, step := range all {
		if step.Free && step.After.failing == s.failing && step.After.away == s.away {
			return all, nil
		}
	}
	if s.collector == 0 || len(l.Later) == 0 && !l.Working[Barrier] {
		return all, nil
	}
	after, err := w.pass(s)
	if err != nil {
		return nil, err
	}
	return append(all, Step{Says: "a second passes", After: after, Free: true}), nil
}
