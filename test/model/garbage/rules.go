package garbage

import (
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// The rules for the writes of the collector. The ages are those of the calls: a write may be
// under way for any time, so that the evidence for it is judged at the moment when it was sent.
const (
	// DeletedWithOwner: promise 3 is broken. A dependent is deleted although one of its
	// references, as stored, is neither absent nor was in foreground within a second.
	DeletedWithOwner = "DeletedWithOwner"
	// PolicyChanged: an object that is being deleted gets another policy.
	PolicyChanged = "PolicyChanged"
	// JudgedChildless: an object is deleted in the background while an owner waits for it and a
	// dependent blocks it that was committed before the deletion of the owner.
	JudgedChildless = "JudgedChildless"
	// LiveReferenceRemoved: a reference to a live owner is removed.
	LiveReferenceRemoved = "LiveReferenceRemoved"
	// WaitingReferenceRemoved: promise 1 is broken. A reference to an owner in foreground is removed, and
	// no owner that stays lives or did within a second.
	WaitingReferenceRemoved = "WaitingReferenceRemoved"
	// OrphanedByMistake: an object loses its last reference although no owner orphans it.
	OrphanedByMistake = "OrphanedByMistake"
	// ReleasedEarly: promise 1 is broken.
	ReleasedEarly = "ReleasedEarly"
	// OrphanedEarly: promise 2 is broken.
	OrphanedEarly = "OrphanedEarly"
	// EndedInVain: the collector takes a list or a read for that of a restored etcd, which was not restored.
	EndedInVain = "EndedInVain"
	// ForeignChange: the collector changes what is none of its business.
	ForeignChange = "ForeignChange"
)

func brokenRule(rule, sentence string) explore.Finding {
	return explore.Finding{Rule: rule, Sentence: sentence}
}

// judgeDelete returns the rules that a deletion broke; after is what is left of the object.
func (w *world) judgeDelete(s *State, o, after *Object, age int) []explore.Finding {
	if o.Deleting {
		if after == nil || after.Foreground != o.Foreground || after.Orphan != o.Orphan {
			return []explore.Finding{brokenRule(PolicyChanged, w.name(o)+" is being deleted, and becomes "+w.name(after))}
		}
		return nil
	}
	var found []explore.Finding
	if len(o.Refs) == 0 {
		found = append(found, brokenRule(DeletedWithOwner, w.name(o)+" is deleted, and has no owner"))
	}
	waited := false
	for _, r := range o.Refs {
		owner := w.ownerOf(s, o, r)
		if owner == nil {
			continue
		}
		waited = waited || owner.inForeground()
		if !owner.inForeground() && s.sinceForeground[owner.Slot]-age >= 1 {
			found = append(found, brokenRule(
				DeletedWithOwner, fmt.Sprintf("%s is deleted, and its owner is %s", w.name(o), w.name(owner)),
			))
		}
	}
	if waited && (after == nil || !after.Foreground && !after.Orphan) {
		found = append(found, w.judgeChildless(s, o)...)
	}
	return found
}

// judgeChildless judges a deletion in the background of an object that an owner waits for.
func (w *world) judgeChildless(s *State, o *Object) []explore.Finding {
	var found []explore.Finding
	for _, r := range o.Refs {
		owner := w.ownerOf(s, o, r)
		if owner == nil || !owner.inForeground() {
			continue
		}
		for _, d := range s.blockers[owner.Slot].dependents(o.Slot) {
			if d != owner.Slot && d != o.Slot && !s.unread[w.config.Slots[d].Kind] {
				found = append(found, brokenRule(
					JudgedChildless, fmt.Sprintf("%s is deleted in the background, %s blocks it", w.name(o), w.name(s.objects[d])),
				))
			}
		}
	}
	return found
}

// judgePatch returns the rules that a patch broke.
func (w *world) judgePatch(s *State, o, after *Object, age int) []explore.Finding {
	found := w.judgeReferences(s, o, after, age)
	if o.Foreground && !after.Foreground {
		found = append(found, w.judgeRelease(s, o)...)
	}
	if o.Orphan && !after.Orphan {
		if !o.Deleting {
			found = append(found, brokenRule(ForeignChange, w.name(o)+" is not deleted, and loses orphan"))
		}
		for _, d := range s.before[o.Slot].dependents(o.Slot) {
			found = append(found, brokenRule(
				OrphanedEarly, fmt.Sprintf("%s loses orphan, %s refers to it", w.name(o), w.name(s.objects[d])),
			))
		}
	}
	if after.Foreground && !o.Foreground || after.Orphan && !o.Orphan || after.Foreign != o.Foreign {
		found = append(found, brokenRule(ForeignChange, w.name(o)+" becomes "+w.name(after)))
	}
	return found
}

// judgeReferences judges the references that a patch removed.
func (w *world) judgeReferences(s *State, o, after *Object, age int) []explore.Finding {
	var found []explore.Finding
	orphaned, kept := false, 0
	var waiting *Object
	for _, r := range o.Refs {
		if kept < len(after.Refs) && after.Refs[kept] == r {
			kept++
			continue
		}
		owner := w.ownerOf(s, o, r)
		switch {
		case w.isOrphaned(s, owner, r, age):
			orphaned = true
		case owner != nil && owner.inForeground():
			waiting = owner
		}
		found = append(found, w.judgeLive(s, o, owner, r, age)...)
	}
	switch {
	case kept != len(after.Refs):
		return append(found, brokenRule(ForeignChange, w.name(o)+" becomes "+w.name(after)))
	case !orphaned && len(o.Refs) > 0 && kept == 0:
		found = append(found, brokenRule(OrphanedByMistake, w.name(o)+" loses its last reference"))
	}
	if waiting != nil && !w.hasLivingOwner(s, after, age) {
		found = append(found, brokenRule(
			WaitingReferenceRemoved, fmt.Sprintf("%s loses its reference to %s", w.name(o), w.name(waiting)),
		))
	}
	return found
}

// isOrphaned reports whether the owner of a removed reference orphans, or did within a second before the call.
func (w *world) isOrphaned(s *State, owner *Object, r Ref, age int) bool {
	return owner != nil && owner.orphans() || s.sinceOrphan[w.slotOf(s, r)]-age < 1
}

// judgeLive judges the removal of one reference: its owner does not live.
func (w *world) judgeLive(s *State, o, owner *Object, r Ref, age int) []explore.Finding {
	slot := w.slotOf(s, r)
	if owner == nil || owner.waits() || s.sinceOrphan[slot]-age < 1 || s.sinceForeground[slot]-age < 1 {
		return nil
	}
	return []explore.Finding{brokenRule(LiveReferenceRemoved, fmt.Sprintf(
		"%s loses its reference to %s", w.name(o), w.name(owner),
	))}
}

// hasLivingOwner reports whether an owner of the object lives, or did within a second before the call.
func (w *world) hasLivingOwner(s *State, o *Object, age int) bool {
	return slices.ContainsFunc(o.Refs, func(r Ref) bool {
		owner := w.ownerOf(s, o, r)
		return owner != nil && !owner.waits() || s.sinceLive[w.slotOf(s, r)]-age < 1
	})
}

// slotOf returns the slot of the owner that the reference names, which may be gone.
func (w *world) slotOf(s *State, r Ref) int {
	for slot := range w.config.Slots {
		for incarnation := range s.incarnations[slot] + 1 {
			if r.Owner == w.uidAt(slot, incarnation) {
				return slot
			}
		}
	}
	return len(w.config.Slots)
}

// judgeRelease judges the removal of foregroundDeletion.
func (w *world) judgeRelease(s *State, o *Object) []explore.Finding {
	if !o.Deleting || o.Orphan {
		return []explore.Finding{brokenRule(ForeignChange, w.name(o)+" loses foregroundDeletion")}
	}
	var found []explore.Finding
	for _, d := range s.blockers[o.Slot].dependents(o.Slot) {
		if s.witness[o.Slot]&(1<<d) == 0 && !s.unread[w.config.Slots[d].Kind] {
			found = append(found, brokenRule(
				ReleasedEarly, fmt.Sprintf("%s loses foregroundDeletion, %s blocks it", w.name(o), w.name(s.objects[d])),
			))
		}
	}
	return found
}

// bearWitness records the component of an owner that a search for cycles has read, if nothing that was
// committed before its deletion blocks the component from outside.
func (w *world) bearWitness(s *State, slot int) {
	s.witness[slot] = 0
	members := w.component(s, slot)
	if members == 0 {
		return
	}
	for owner := range maxSlots {
		if members&(1<<owner) == 0 {
			continue
		}
		for _, d := range s.blockers[owner].dependents(owner) {
			if members&(1<<d) == 0 && !s.unread[w.config.Slots[d].Kind] {
				return
			}
		}
	}
	s.witness[slot] = members
}

// component returns the slots of the owners in foreground that block each other, 0 for none.
func (w *world) component(s *State, slot int) uint8 {
	_, blocking := w.references(s)
	reach := func(from int, back bool) uint8 {
		var reached uint8
		for next := []int{from}; len(next) > 0; next = next[1:] {
			for other := range maxSlots {
				e := edge(other, next[0])
				if back {
					e = edge(next[0], other)
				}
				if o := s.objects[other]; o != nil && o.inForeground() && blocking&e != 0 && reached&(1<<other) == 0 {
					reached |= 1 << other
					next = append(next, other)
				}
			}
		}
		return reached
	}
	if o := s.objects[slot]; o == nil || !o.inForeground() {
		return 0
	}
	members := reach(slot, false) & reach(slot, true)
	if members&(1<<slot) == 0 {
		return 0
	}
	return members
}
