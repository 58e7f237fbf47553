package garbage

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// stockSteps returns what upstream's collector may do. It is late: what it sees is a state of the past.
func (w *world) stockSteps(s *State) []Step {
	if s.faults.Stock == 0 {
		return nil
	}
	var all []Step
	if s.stock != s.objects {
		after := s.clone()
		after.stock = s.objects
		all = append(all, Step{Says: "upstream's collector sees everything", After: after})
	}
	for _, seen := range s.stock {
		if seen == nil {
			continue
		}
		after := s.clone()
		after.faults.Stock--
		if w.stock(after, seen) {
			all = append(all, Step{Says: "upstream's collector acts on " + w.name(seen), After: after})
		}
	}
	return all
}

// stock carries out one step of upstream's collector on an object that it sees, as it is in v1.36,
// and returns false if there is nothing to do.
func (w *world) stock(s *State, seen *Object) bool {
	live := s.objects[seen.Slot]
	if live == nil || live.Incarnation != seen.Incarnation {
		return false
	}
	switch {
	case seen.orphans():
		return w.stockOrphan(s, live)
	case seen.inForeground():
		return w.stockRelease(s, live)
	}
	return w.stockDelete(s, live)
}

// stockOrphan removes the references of the dependents that it sees, and then the finalizer.
func (w *world) stockOrphan(s *State, live *Object) bool {
	if !live.Orphan {
		return false
	}
	for _, d := range s.stock {
		if d == nil || s.objects[d.Slot] == nil || s.objects[d.Slot].Incarnation != d.Incarnation {
			continue
		}
		w.stockUnref(s, s.objects[d.Slot], live.Slot)
	}
	released := *s.objects[live.Slot]
	released.Orphan = false
	w.update(s, &released)
	return true
}

func (w *world) stockUnref(s *State, d *Object, owner int) {
	changed := *d
	changed.Refs = nil
	for _, r := range d.Refs {
		if r.Owner != w.uidAt(owner, s.objects[owner].Incarnation) {
			changed.Refs = append(changed.Refs, r)
		}
	}
	if len(changed.Refs) < len(d.Refs) {
		w.update(s, &changed)
	}
}

// stockRelease removes foregroundDeletion if it sees no blocker.
func (w *world) stockRelease(s *State, live *Object) bool {
	if !live.Foreground {
		return false
	}
	for _, d := range s.stock {
		if d == nil {
			continue
		}
		for _, r := range d.Refs {
			if r.Owner == w.uidAt(live.Slot, live.Incarnation) && r.Blocks {
				return false
			}
		}
	}
	released := *live
	released.Foreground = false
	w.update(s, &released)
	return true
}

// stockDelete deletes an object whose owners are absent or wait, after live reads.
func (w *world) stockDelete(s *State, live *Object) bool {
	if live.Deleting || len(live.Refs) == 0 {
		return false
	}
	waiting, dangling, solid := false, false, false
	for _, r := range live.Refs {
		switch owner := w.ownerOf(s, live, r); {
		case owner == nil:
			dangling = true
		case owner.inForeground():
			waiting = true
		default:
			solid = true
		}
	}
	switch {
	case solid && (waiting || dangling):
		w.keepSolid(s, live)
		return true
	case solid:
		return false
	}
	how := metav1.DeletePropagationBackground
	if waiting && len(w.seenDependents(s, live)) > 0 || live.Foreground {
		how = metav1.DeletePropagationForeground
	}
	if live.Orphan {
		how = metav1.DeletePropagationOrphan
	}
	_, err := w.delete(s, live, policy(how))
	return err == nil
}

// keepSolid removes the references to owners that are absent or wait.
func (w *world) keepSolid(s *State, live *Object) {
	changed := *live
	changed.Refs = nil
	for _, r := range live.Refs {
		if owner := w.ownerOf(s, live, r); owner != nil && !owner.inForeground() {
			changed.Refs = append(changed.Refs, r)
		}
	}
	w.update(s, &changed)
}

// seenDependents returns the slots of the dependents that upstream's collector sees.
func (w *world) seenDependents(s *State, owner *Object) []int {
	var slots []int
	for _, d := range s.stock {
		if d == nil {
			continue
		}
		for _, r := range d.Refs {
			if r.Owner == w.uidAt(owner.Slot, owner.Incarnation) {
				slots = append(slots, d.Slot)
			}
		}
	}
	return slots
}
