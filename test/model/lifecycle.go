package model

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// starts returns the start of a program that does not run, with a fresh list, and with old ones.
func (w *world) starts(s *State, i int) ([]Step, error) {
	if s.instances[i].local != process.Off {
		return nil, nil
	}
	fresh, err := w.start(s, i, s.objects)
	if err != nil {
		return nil, err
	}
	all := []Step{fresh}
	for slot, versions := range s.older {
		if !w.mayListOld(s, i, slotID(slot)) {
			continue
		}
		for _, old := range append([]objectID{0}, versions...) {
			step, err := w.startWithOld(s, i, slotID(slot), old)
			if err != nil {
				return nil, err
			}
			all = append(all, step)
		}
	}
	return all, nil
}

// isUnsteady reports whether the program may crash, and start with an old list.
func (w *world) isUnsteady(i int) bool {
	return w.config.Unsteady == nil || slices.Contains(w.config.Unsteady, w.config.Programs[i].Name)
}

// mayListOld reports whether the program may start with an old list of the object.
func (w *world) mayListOld(s *State, i int, slot slotID) bool {
	return s.oldLists > 0 && s.stalled.program == 0 && w.isUnsteady(i) && w.mayStall(slot) &&
		slices.Contains(w.config.Programs[i].Caches, w.slots[slot].Resource)
}

// startWithOld returns the start with a list that shows an old version of an object, or does not show
// it yet; the watch stalls.
func (w *world) startWithOld(s *State, i int, slot slotID, old objectID) (Step, error) {
	before, listed := s.clone(), slices.Clone(s.objects)
	before.oldLists--
	before.stalled = stalledWatch{program: int8(i + 1), slot: int8(slot)}
	listed[slot] = old
	step, err := w.start(before, i, listed)
	if step.Free = false; old == 0 {
		step.Says += " with a list that does not show " + w.slots[slot].Name + " yet"
	} else {
		step.Says += " with an old list: " + w.describe(old)
	}
	return step, err
}

// start returns the start of a program with a list of the versions.
func (w *world) start(s *State, i int, versions []objectID) (Step, error) {
	program := w.config.Programs[i]
	after := s.clone()
	after.instances[i].terms++
	after.instances[i].seen = nil
	start := &process.Start{Options: process.Options{
		Honor: w.honors(s, i), Journaled: program.Journaled, Term: after.instances[i].terms,
	}}
	text := fmt.Sprintf("start %+v", start.Options)
	for slot, id := range versions {
		if id == 0 || !slices.Contains(program.Caches, w.slots[slot].Resource) {
			continue
		}
		after.see(i, slotID(slot), id)
		if w.objects[id].JSON != "" {
			start.Listed = append(start.Listed, w.objects[id])
			text += fmt.Sprintf(" %d", id)
		}
	}
	w.trimAll(after)
	after, stuck, err := w.move(after, i, false, process.Input{Start: start}, text)
	return Step{After: after, Says: program.Name + " starts", Free: true, Stuck: stuck}, err
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
		all = append(all, Step{
			After: after, Says: "two seconds pass for " + w.config.Programs[i].Name, Free: true, Stuck: stuck,
		})
	}
	if len(local.Keys) > 0 && w.isQuiet(s) {
		after, stuck, err := w.move(s, i, false, process.Input{Seconds: 61}, "a minute")
		if err != nil {
			return nil, err
		}
		if after.instances[i].local != s.instances[i].local {
			after.minutePassed(i)
			all = append(all, Step{
				After: after, Says: "a minute passes for " + w.config.Programs[i].Name, Free: true, Later: true, Stuck: stuck,
			})
		}
	}
	if s.hours == 0 {
		return all, nil
	}
	hour, err := w.hour(s, i)
	return append(all, hour...), err
}

// hour returns the passing of an hour.
func (w *world) hour(s *State, i int) ([]Step, error) {
	after, stuck, err := w.move(s, i, false, process.Input{Seconds: 3660}, "an hour")
	if err != nil {
		return nil, err
	}
	after.minutePassed(i)
	if after.hours--; after.instances[i].local == s.instances[i].local {
		return nil, nil
	}
	return []Step{{After: after, Says: "an hour passes for " + w.config.Programs[i].Name, Stuck: stuck}}, nil
}

// isQuiet reports whether every program runs, and none has anything to do but to retry.
func (w *world) isQuiet(s *State) bool {
	for i, program := range s.instances {
		local := w.local(s, i)
		due := slices.ContainsFunc(local.Keys, func(key process.Key) bool { return !key.Later })
		if program.local == process.Off || due || local.Pending || s.isBusy(w, i) || len(local.Calls) > 0 ||
			w.isStale(s, i) || s.stalled.program != 0 {
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
	if s.crashes == 0 || !w.isUnsteady(i) {
		return all, nil
	}
	name, local := w.config.Programs[i].Name, w.local(s, i)
	after.crashes--
	all = append(all, Step{After: after, Says: name + " crashes"})
	if w.config.FormerLeaders && here.former == process.Off && (local.Busy || len(local.Calls) > 0) {
		former := after.clone()
		former.instances[i].former, former.instances[i].past = here.local, here.present
		all = append(all, Step{After: former, Says: name + " loses its lease; what it has in flight goes on"})
	}
	return all, nil
}

// stopped returns the state in which the program does not run.
func (w *world) stopped(s *State, i int) *State {
	after := s.clone()
	after.instances[i].local, after.instances[i].seen, after.instances[i].present = process.Off, nil, basis{}
	if int(after.stalled.program) == i+1 {
		after.stalled = stalledWatch{}
	}
	w.trimAll(after)
	return after
}

// honors reports whether the gate HonorPVReclaimPolicy of the program is on.
func (w *world) honors(s *State, i int) bool {
	return w.config.Programs[i].Honor != s.instances[i].switched
}

// switches returns the stop of a program that starts with the other gate; stopped is the state in
// which the program does not run.
func (w *world) switches(s, stopped *State, i int) []Step {
	if s.switches == 0 {
		return nil
	}
	after := stopped.clone()
	after.switches--
	after.instances[i].switched = !after.instances[i].switched
	gate := "off"
	if w.honors(after, i) {
		gate = "on"
	}
	w.giveUpDeleted(s, after)
	return []Step{{After: after, Says: w.config.Programs[i].Name + " stops, and has its gate switched " + gate}}
}
