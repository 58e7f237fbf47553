package model

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/internal/model/process"
)

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
