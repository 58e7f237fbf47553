package model

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// put returns the state with another version of an object. The version before is kept for the
// caches that have not seen it.
func (w *world) put(s *State, slot slotID, now objectID) *State {
	after := s.clone()
	for len(after.objects) <= int(slot) {
		after.objects = append(after.objects, 0)
	}
	for len(after.older) <= int(slot) {
		after.older = append(after.older, nil)
	}
	if before := after.objects[slot]; before != 0 && w.config.EveryVersion {
		after.older[slot] = append(slices.Clone(after.older[slot]), before)
	}
	after.objects[slot] = now
	w.trim(after, slot)
	return after
}

// trim drops the older versions that every running program has seen.
func (w *world) trim(s *State, slot slotID) {
	if !w.config.EveryVersion || len(at(s.older, int(slot))) == 0 || s.oldLists > 0 && w.mayStall(slot) {
		return
	}
	first := len(s.older[slot])
	for i, program := range w.config.Programs {
		if s.instances[i].local == process.Off || !slices.Contains(program.Caches, w.slots[slot].Resource) {
			continue
		}
		first = min(first, w.position(s, i, slot)+1)
	}
	s.older[slot] = s.older[slot][first:]
}

func (w *world) trimAll(s *State) {
	for slot := range s.older {
		w.trim(s, slotID(slot))
	}
}

// position returns which of the older versions a program has seen last, -1 for none of them, and
// their number for the present one.
func (w *world) position(s *State, program int, slot slotID) int {
	seen := at(s.instances[program].seen, int(slot))
	if seen == s.objects[slot] {
		return len(s.older[slot])
	}
	return slices.Index(s.older[slot], seen)
}

// unseen returns the versions of a slot that a program can see next.
func (w *world) unseen(s *State, program int, slot slotID) []objectID {
	now := s.objects[slot]
	if now == 0 || at(s.instances[program].seen, int(slot)) == now ||
		!slices.Contains(w.config.Programs[program].Caches, w.slots[slot].Resource) {
		return nil
	}
	versions := []objectID{now}
	if older := at(s.older, int(slot)); len(older) > 0 {
		if next := w.position(s, program, slot) + 1; next < len(older) {
			versions = append(versions, older[next])
		}
	}
	if !w.config.SkipVersions && len(versions) > 1 {
		versions = versions[1:]
	}
	return versions
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

// cacheSteps returns what the caches of a program see next. A pass begins only once they show all that
// was written, so that nothing else matters before; but a watch can stall.
func (w *world) cacheSteps(s *State, i int) ([]Step, error) {
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
			step, err := w.cacheStep(s, i, slotID(slot), id)
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

// cacheStep returns the step in which a cache sees a version.
func (w *world) cacheStep(s *State, i int, slot slotID, id objectID) (Step, error) {
	after := s.clone()
	after.see(i, slot, id)
	w.trim(after, slot)
	after, stuck, err := w.move(
		after, i, false, process.Input{See: &w.objects[id], Listed: w.isRestored(id)}, fmt.Sprintf("see %d", id),
	)
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
			step, err := w.cacheStep(s, i, slot, id)
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
	listed, stuck, err := w.move(
		listed, i, false, process.Input{See: &w.objects[id], Listed: true}, fmt.Sprintf("list %d", id),
	)
	return append(all, Step{
		After: listed, Says: "a list shows " + name + " that " + w.describe(id), Free: true, Stuck: stuck,
	}), err
}
