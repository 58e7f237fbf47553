package garbage

import (
	"fmt"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// The rules for a cluster at rest: no fault is left, and nothing more happens.
const (
	// GarbageLeft: an object remains all of whose owners are absent.
	GarbageLeft = "GarbageLeft"
	// OwnerStuck: an owner waits without a blocker.
	OwnerStuck = "OwnerStuck"
	// BlockerLives: an owner waits for an object that is not deleted.
	BlockerLives = "BlockerLives"
	// CycleLeft: owners wait for each other, and nothing else blocks them.
	CycleLeft = "CycleLeft"
	// ReferenceLeft: an object with a live owner refers to an owner that is absent or waits.
	ReferenceLeft = "ReferenceLeft"
	// Restless: the cluster never comes to rest.
	Restless = "Restless"
)

// AtRest returns what is wrong with a cluster at rest.
func (w *world) AtRest(s *State, restless bool) []explore.Finding {
	if restless {
		return []explore.Finding{brokenRule(Restless, "the cluster never comes to rest")}
	}
	var found []explore.Finding
	all, blocking := w.references(s)
	for slot, o := range s.objects {
		if o == nil {
			continue
		}
		found = append(found, w.referencesAtRest(s, o)...)
		switch {
		case o.orphans():
			found = append(found, brokenRule(
				OwnerStuck, fmt.Sprintf("%s waits, dependents: %v", w.name(o), all.dependents(slot)),
			))
		case o.inForeground() && len(blocking.dependents(slot)) == 0:
			found = append(found, brokenRule(OwnerStuck, w.name(o)+" waits without a blocker"))
		case o.inForeground() && !w.endsElsewhere(s, blocking, slot):
			found = append(found, brokenRule(CycleLeft, w.name(o)+" waits for a cycle"))
		}
		if !o.inForeground() {
			continue
		}
		for _, d := range blocking.dependents(slot) {
			if blocker := s.objects[d]; !blocker.Deleting {
				found = append(found, brokenRule(BlockerLives, fmt.Sprintf("%s waits for %s", w.name(o), w.name(blocker))))
			}
		}
	}
	return found
}

func (w *world) referencesAtRest(s *State, o *Object) []explore.Finding {
	live, gone := false, 0
	for _, r := range o.Refs {
		owner := w.ownerOf(s, o, r)
		switch {
		case owner == nil || owner.inForeground():
			gone++
		case !owner.waits():
			live = true
		}
	}
	absent := 0
	for _, r := range o.Refs {
		if w.ownerOf(s, o, r) == nil {
			absent++
		}
	}
	switch {
	case o.Deleting:
	case len(o.Refs) > 0 && absent == len(o.Refs):
		return []explore.Finding{brokenRule(GarbageLeft, w.name(o)+" remains")}
	case live && gone > 0:
		return []explore.Finding{brokenRule(ReferenceLeft, w.name(o)+" remains")}
	}
	return nil
}

// endsElsewhere reports whether an object that another component keeps is among those that block
// the owner, directly or not.
func (w *world) endsElsewhere(s *State, blocking edges, slot int) bool {
	seen := uint8(1 << slot)
	for next := []int{slot}; len(next) > 0; next = next[1:] {
		if s.objects[next[0]].Foreign && next[0] != slot {
			return true
		}
		for _, d := range blocking.dependents(next[0]) {
			if !s.objects[d].Deleting {
				return true // BlockerLives
			}
			if seen&(1<<d) == 0 {
				seen |= 1 << d
				next = append(next, d)
			}
		}
	}
	return false
}
