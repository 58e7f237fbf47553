package model

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// sights returns what the caches of a program see next. A pass begins only once they show all that
// was written, so that nothing else matters before; but a watch can stall.
func (w *world) sights(s *State, i int) ([]Step, error) {
	local := w.local(s, i)
	frozen := local.Busy && !w.config.SeeWithinPass && !w.config.Programs[i].Concurrent
	if s.instances[i].local == process.Off || local.Stuck != "" || frozen {
		return nil, nil
	}
	all, err := w.stallEnds(s, i)
	if err != nil {
		return nil, err
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
		if s.stalls >= 0 {
			return append(all, w.stallBegins(s, i, slotID(slot))...), nil
		}
	}
	return all, nil
}

// sight returns the step in which a cache sees a version.
func (w *world) sight(s *State, i int, slot slotID, id objectID) (Step, error) {
	after := s.clone()
	after.see(i, slot, id)
	w.trim(after, slot)
	after, stuck, err := w.move(after, i, false, process.Input{See: &w.objects[id], Listed: w.isRestored(id)}, fmt.Sprintf("see %d", id))
	return Step{After: after, Says: w.config.Programs[i].Name + " sees " + w.describe(id), Free: true, Stuck: stuck}, err
}

// stallBegins returns the step in which the watch of an object stalls.
func (w *world) stallBegins(s *State, i int, slot slotID) []Step {
	resource := w.slots[slot].Resource
	if s.stalls == 0 || s.stalled.program != 0 || !w.mayStall(slot) {
		return nil
	}
	after := s.clone()
	after.stalls--
	after.stalled = stalledWatch{program: int8(i + 1), slot: int8(slot)}
	says := fmt.Sprintf("the watch of %s for %s stalls", w.config.Programs[i].Name, resource)
	return []Step{{After: after, Says: says, Local: !w.local(s, i).Busy}}
}

// mayStall reports whether the watch of an object may stall.
func (w *world) mayStall(slot slotID) bool {
	return w.config.Stalling == nil || slices.Contains(w.config.Stalling, w.slots[slot].Resource)
}

// stallEnds returns the steps in which a stalled watch goes on, or a list replaces the watch.
func (w *world) stallEnds(s *State, i int) ([]Step, error) {
	if int(s.stalled.program) != i+1 {
		return nil, nil
	}
	name, slot, after := w.config.Programs[i].Name, slotID(s.stalled.slot), s.clone()
	after.stalled = stalledWatch{}
	all := []Step{{After: after, Says: "the watch of " + name + " goes on", Free: true}}
	if w.config.Slow {
		for _, id := range w.unseen(s, i, slot) {
			step, err := w.sight(s, i, slot, id)
			if err != nil {
				return nil, err
			}
			all = append(all, step)
		}
	}
	if !w.config.Lists || len(w.unseen(s, i, slot)) == 0 {
		return all, nil
	}
	listed, id := after.clone(), s.objects[slot]
	listed.see(i, slot, id)
	w.trim(listed, slot)
	listed, stuck, err := w.move(listed, i, false, process.Input{See: &w.objects[id], Listed: true}, fmt.Sprintf("list %d", id))
	return append(all, Step{After: listed, Says: "a list shows " + name + " that " + w.describe(id), Free: true, Stuck: stuck}), err
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
