package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/internal/model/check"
	"github.com/exeunt-io/exeunt/internal/model/process"
	"github.com/exeunt-io/exeunt/internal/model/server"
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
	// Program is the number of the program that takes the step.
	Program int
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
	return append(all, w.scheduled(s, -1, w.userSteps(s))...), nil
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

// stepsOf returns the steps of one program and of its former leader.
func (w *world) stepsOf(s *State, i int) ([]Step, error) {
	var all []Step
	for n, add := range []func(*State, int) ([]Step, error){w.sights, w.passes, w.starts, w.answers, w.formerAnswers, w.ends, w.waits} {
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

// local returns what is known of the running process.
func (w *world) local(s *State, i int) *process.Local {
	return w.machines[i].Local(s.instances[i].local)
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
	if former := w.machines[i].Local(here.former); former.Stuck != "" || !former.Busy && len(former.Calls) == 0 { // it starts nothing any more
		here.former = process.Off
	}
	if !s.isBusy(w, i) {
		here.read = nil
	}
	calls := append(openCalls(w.machines[i].Local(here.local)), openCalls(w.machines[i].Local(here.former))...)
	switch {
	case len(calls) == 0 || s.interruptions == 0 && !w.config.FormerLeaders:
		here.sent = nil
	case len(here.sent) == 0:
		here.sent = s.objects
	}
}

// isBusy reports whether a pass of the program has not ended.
func (s *State) isBusy(w *world, i int) bool {
	return w.local(s, i).Busy || w.machines[i].Local(s.instances[i].former).Busy
}

// recordRead records what a program reads live: what it does next rests on it, and on what the
// pass has read of other objects. Where nothing can happen in between, that is the state before.
func (w *world) recordRead(s *State, i int, call process.Call) *State {
	if call.Request.Method != http.MethodGet {
		return s
	}
	after := s.clone()
	here := &after.instances[i]
	switch {
	case s.interruptions == 0 && !w.config.FormerLeaders:
		here.read = nil
	case len(here.read) == 0:
		here.read = s.objects
	default:
		here.read = w.readAgain(here.read, s.objects, call.Request.Path)
	}
	return after
}

// readAgain returns what a pass has read live once it also reads the path.
func (w *world) readAgain(read, now []objectID, path string) []objectID {
	both := slices.Clone(now)
	for slot := range both {
		if key := w.slots[slot]; slot < len(read) && !isAt(key, path) {
			both[slot] = read[slot]
		}
	}
	return both
}

// isAt reports whether a read of the path returns the object with the key.
func isAt(key server.Key, path string) bool {
	if key.Namespace != "" && strings.Contains(path, "/namespaces/") && !strings.Contains(path, "/namespaces/"+key.Namespace+"/") {
		return false
	}
	return strings.HasSuffix(path, "/"+key.Resource) || strings.HasSuffix(path, "/"+key.Resource+"/"+key.Name)
}

// starts returns the start of a program that does not run, with a fresh list.
func (w *world) starts(s *State, i int) ([]Step, error) {
	if s.instances[i].local != process.Off {
		return nil, nil
	}
	program := w.config.Programs[i]
	after := s.clone()
	after.instances[i].terms++
	after.instances[i].seen = nil
	start := &process.Start{Options: process.Options{Honor: w.honors(s, i), Journaled: program.Journaled, Term: after.instances[i].terms}}
	text := fmt.Sprintf("start %+v", start.Options)
	for slot, id := range s.objects {
		if id == 0 || !slices.Contains(program.Caches, w.slots[slot].Resource) {
			continue
		}
		after.see(i, slotID(slot), id)
		if w.objects[id].JSON != "" {
			start.Listed = append(start.Listed, w.objects[id])
			text += fmt.Sprintf(" %d", id)
		}
	}
	after, stuck, err := w.move(after, i, false, process.Input{Start: start}, text)
	if err != nil {
		return nil, err
	}
	return []Step{{After: after, Says: program.Name + " starts", Free: true, Stuck: stuck}}, nil
}

// sights returns what the caches of a program see next. A pass begins only once they show all that
// was written, so that nothing else matters before; but a watch can stall.
func (w *world) sights(s *State, i int) ([]Step, error) {
	local, name := w.local(s, i), w.config.Programs[i].Name
	if s.instances[i].local == process.Off || local.Stuck != "" || local.Busy && !w.config.SeeWithinPass && !w.config.Programs[i].Concurrent {
		return nil, nil
	}
	var all []Step
	if int(s.stalled.program) == i+1 {
		after := s.clone()
		after.stalled = stalledWatch{}
		all = append(all, Step{After: after, Says: "the watch of " + name + " goes on", Free: true})
		listed, err := w.list(after, i, slotID(s.stalled.slot))
		if err != nil {
			return nil, err
		}
		all = append(all, listed...)
	}
	for slot := range s.objects {
		versions := w.unseen(s, i, slotID(slot))
		if len(versions) == 0 || s.stalled.is(i, slotID(slot)) {
			continue
		}
		for _, id := range versions {
			step, err := w.sight(s, i, slotID(slot), id)
			if err != nil {
				return nil, err
			}
			step.Local = s.stalls >= 0 && !local.Busy
			all = append(all, step)
		}
		if s.stalls < 0 {
			continue
		}
		if s.stalls > 0 && s.stalled.program == 0 && w.stalls(w.slots[slot].Resource) {
			after := s.clone()
			after.stalls--
			after.stalled = stalledWatch{program: int8(i + 1), slot: int8(slot)}
			all = append(all, Step{After: after, Says: fmt.Sprintf("the watch of %s for %s stalls", name, w.slots[slot].Resource), Local: !local.Busy})
		}
		return all, nil
	}
	return all, nil
}

// list returns the list that replaces an object in the cache of a program after its watch ended.
func (w *world) list(s *State, i int, slot slotID) ([]Step, error) {
	if !w.config.Lists || len(w.unseen(s, i, slot)) == 0 {
		return nil, nil
	}
	after, id := s.clone(), s.objects[slot]
	after.see(i, slot, id)
	w.trim(after, slot)
	after, stuck, err := w.move(after, i, false, process.Input{See: &w.objects[id], Listed: true}, fmt.Sprintf("list %d", id))
	return []Step{{After: after, Says: "a list shows " + w.config.Programs[i].Name + " that " + w.describe(id), Free: true, Stuck: stuck}}, err
}

// stalls reports whether a watch of the resource can stall.
func (w *world) stalls(resource string) bool {
	return w.config.Stalling == nil || slices.Contains(w.config.Stalling, resource)
}

// sight returns the step in which a cache sees a version.
func (w *world) sight(s *State, i int, slot slotID, id objectID) (Step, error) {
	after := s.clone()
	after.see(i, slot, id)
	w.trim(after, slot)
	after, stuck, err := w.move(after, i, false, process.Input{See: &w.objects[id]}, fmt.Sprintf("see %d", id))
	return Step{After: after, Says: w.config.Programs[i].Name + " sees " + w.describe(id), Free: true, Stuck: stuck}, err
}

// passes returns the passes that a program without work in flight can begin.
func (w *world) passes(s *State, i int) ([]Step, error) {
	local := w.local(s, i)
	if s.instances[i].local == process.Off || !w.config.Programs[i].Concurrent && (local.Busy || len(local.Calls) > 0) || slices.Contains(local.Working, process.Starting) {
		return nil, nil
	}
	if s.stalls >= 0 && w.isStale(s, i) {
		return nil, nil
	}
	var all []Step
	for _, key := range local.Keys {
		if loops := w.config.Programs[i].Loops; loops != nil && !slices.Contains(loops, key.Loop) || slices.Contains(local.Working, key.Loop) {
			continue
		}
		after, stuck, err := w.move(s, i, false, process.Input{Reconcile: &key}, fmt.Sprintf("reconcile %d %s", key.Loop, key.Key))
		if err != nil {
			return nil, err
		}
		says := fmt.Sprintf("%s reconciles %s in %s", w.config.Programs[i].Name, key.Key, w.machines[i].Loop(key.Loop))
		sent := newCalls(local.Calls, w.local(after, i).Calls)
		switch {
		case len(sent) > 0: // nothing can come between the begin and the first answer
			answered, err := w.answersTo(after, i, sent, false)
			if err != nil {
				return nil, err
			}
			for _, step := range answered {
				step.Says = says + ": " + step.Says
				all = append(all, step)
			}
			if w.config.Programs[i].Concurrent && slices.ContainsFunc(sent, func(call numbered) bool { return call.Create != "" }) {
				all = append(all, Step{After: after, Says: says + ", and CreateVolume waits for its answer", Free: true, Stuck: stuck})
			}
		case w.config.Eager && !key.Later: // no other program notices a pass without calls
			return []Step{{After: after, Says: says, Free: true, Local: true, Stuck: stuck}}, nil
		default:
			all = append(all, Step{After: after, Says: says, Free: true, Later: key.Later, Stuck: stuck})
		}
	}
	return all, nil
}

// isStale reports whether the caches of a program do not show all that was written, apart from a
// watch that stalls.
func (w *world) isStale(s *State, i int) bool {
	for slot := range s.objects {
		if len(w.unseen(s, i, slotID(slot))) > 0 && !s.stalled.is(i, slotID(slot)) {
			return true
		}
	}
	return false
}

// waits returns the passing of time, where it makes a difference.
func (w *world) waits(s *State, i int) ([]Step, error) {
	local := w.local(s, i)
	if s.instances[i].local == process.Off || local.Busy || len(local.Calls) > 0 {
		return nil, nil
	}
	if slices.ContainsFunc(local.Keys, func(key process.Key) bool { return !key.Later }) {
		return nil, nil
	}
	var all []Step
	if local.Pending {
		after, stuck, err := w.move(s, i, false, process.Input{Seconds: 2}, "2 seconds")
		if err != nil {
			return nil, err
		}
		all = append(all, Step{After: after, Says: "two seconds pass for " + w.config.Programs[i].Name, Free: true, Stuck: stuck})
	}
	if len(local.Keys) > 0 && w.isQuiet(s) {
		after, stuck, err := w.move(s, i, false, process.Input{Seconds: 61}, "a minute")
		if err != nil {
			return nil, err
		}
		if after.instances[i].local != s.instances[i].local {
			all = append(all, Step{After: after, Says: "a minute passes for " + w.config.Programs[i].Name, Free: true, Later: true, Stuck: stuck})
		}
	}
	if s.hours == 0 {
		return all, nil
	}
	after, stuck, err := w.move(s, i, false, process.Input{Seconds: 3660}, "an hour")
	if err != nil {
		return nil, err
	}
	if after.hours--; after.instances[i].local != s.instances[i].local {
		all = append(all, Step{After: after, Says: "an hour passes for " + w.config.Programs[i].Name, Stuck: stuck})
	}
	return all, nil
}

// isQuiet reports whether every program runs, and none has anything to do but to retry.
func (w *world) isQuiet(s *State) bool {
	for i, program := range s.instances {
		local := w.local(s, i)
		due := slices.ContainsFunc(local.Keys, func(key process.Key) bool { return !key.Later })
		if program.local == process.Off || due || local.Pending || s.isBusy(w, i) || len(local.Calls) > 0 || w.isStale(s, i) || s.stalled.program != 0 {
			return false
		}
	}
	return true
}

// ends returns the crash of a program, the loss of its lease, and the switch of its gate.
func (w *world) ends(s *State, i int) ([]Step, error) {
	here := s.instances[i]
	if here.local == process.Off {
		return nil, nil
	}
	after := w.stopped(s, i)
	all := w.switches(s, after, i)
	if s.crashes == 0 {
		return all, nil
	}
	name, local := w.config.Programs[i].Name, w.local(s, i)
	after.crashes--
	all = append(all, Step{After: after, Says: name + " crashes"})
	if w.config.FormerLeaders && here.former == process.Off && (local.Busy || len(local.Calls) > 0) {
		former := after.clone()
		former.instances[i].former = here.local
		all = append(all, Step{After: former, Says: name + " loses its lease; what it has in flight goes on"})
	}
	return all, nil
}

// stopped returns the state in which the program does not run.
func (w *world) stopped(s *State, i int) *State {
	after := s.clone()
	after.instances[i].local, after.instances[i].seen = process.Off, nil
	if int(after.stalled.program) == i+1 {
		after.stalled = stalledWatch{}
	}
	w.trimAll(after)
	return after
}

func (w *world) trimAll(s *State) {
	for slot := range s.older {
		w.trim(s, slotID(slot))
	}
}

// answers returns the answers that the calls of a program can get.
func (w *world) answers(s *State, i int) ([]Step, error) {
	if s.instances[i].local == process.Off {
		return nil, nil
	}
	return w.answersTo(s, i, newCalls(nil, w.local(s, i).Calls), false)
}

// formerAnswers returns the late answers to the calls of a former leader.
func (w *world) formerAnswers(s *State, i int) ([]Step, error) {
	former := s.instances[i].former
	if former == process.Off {
		return nil, nil
	}
	return w.answersTo(s, i, newCalls(nil, w.machines[i].Local(former).Calls), true)
}

// numbered is a call that waits for an answer, with its number.
type numbered struct {
	process.Call
	number int
}

// newCalls returns the calls that did not wait before.
func newCalls(before, now []process.Call) []numbered {
	var sent []numbered
	left := slices.Clone(before)
	for number, call := range now {
		if i := slices.Index(left, call); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		sent = append(sent, numbered{call, number})
	}
	return sent
}

func (w *world) answersTo(s *State, i int, calls []numbered, former bool) ([]Step, error) {
	var all []Step
	for _, call := range calls {
		replies, err := w.replies(s, i, call.Call)
		if err != nil {
			return nil, err
		}
		for _, r := range replies {
			after, stuck, err := w.move(w.recordRead(r.state, i, call.Call), i, former, process.Input{Answer: &process.Answered{Call: call.number, Answer: r.answer}}, r.text(call.number))
			if err != nil {
				return nil, err
			}
			who := w.config.Programs[i].Name
			if former {
				who, stuck = "the former "+who, "" // it may end at any time
			}
			all = append(all, Step{After: after, Says: who + ": " + call.String() + r.says, Free: r.free, Effect: r.effect, Plain: r.plain, Program: i, Stuck: stuck})
		}
	}
	return all, nil
}
