package model

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/internal/model/process"
)

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
