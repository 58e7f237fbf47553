package garbage

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The policies of deletions.
const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// deletes deletes the object in the slot.
func deletes(slot int, how metav1.DeletionPropagation) Action {
	return Action{"deletes " + slotNames[slot] + " with the policy " + string(how), func(w *world, s *State) bool {
		o := s.objects[slot]
		if o == nil {
			return false
		}
		_, err := w.delete(s, o, policy(how))
		return err == nil && s.objects[slot] != o
	}}
}

// creates creates an object in the slot, with owners in other slots.
func creates(slot int, blocks bool, owners ...int) Action {
	return Action{"creates " + slotNames[slot], func(w *world, s *State) bool {
		if s.objects[slot] != nil {
			return false
		}
		var refs []Ref
		for _, owner := range owners {
			if s.objects[owner] == nil {
				return false
			}
			refs = append(refs, w.reference(s, owner, blocks))
		}
		w.create(s, slot, Object{Refs: refs})
		return true
	}}
}

// swaps gives an object other owners.
func swaps(slot int, blocks bool, owners ...int) Action {
	return Action{"gives " + slotNames[slot] + " other owners", func(w *world, s *State) bool {
		if s.objects[slot] == nil {
			return false
		}
		changed := *s.objects[slot]
		changed.Refs = nil
		for _, owner := range owners {
			if s.objects[owner] == nil {
				return false
			}
			changed.Refs = append(changed.Refs, w.reference(s, owner, blocks))
		}
		if slices.Equal(changed.Refs, s.objects[slot].Refs) {
			return false
		}
		w.update(s, &changed)
		return true
	}}
}

// strips removes the finalizers of a deleted object that the function clears.
func strips(slot int, what string, remove func(o *Object)) Action {
	return Action{"removes " + what + " from " + slotNames[slot], func(w *world, s *State) bool {
		if s.objects[slot] == nil {
			return false
		}
		changed := *s.objects[slot]
		remove(&changed)
		if len(changed.finalizers()) == len(s.objects[slot].finalizers()) {
			return false
		}
		w.update(s, &changed)
		return true
	}}
}

// lifts has another component remove its finalizer from a deleted object.
func lifts(slot int) Action {
	return strips(slot, "the foreign finalizer", func(o *Object) { o.Foreign = o.Foreign && !o.Deleting })
}

// stripsOurs removes foregroundDeletion or orphan.
func stripsOurs(slot int) Action {
	return strips(slot, "the finalizer of the deletion", func(o *Object) { o.Foreground, o.Orphan = false, false })
}

// touches changes a field that no collector reads.
func touches(slot int) Action {
	return Action{"changes another field of " + slotNames[slot], func(w *world, s *State) bool {
		if s.objects[slot] == nil {
			return false
		}
		changed := *s.objects[slot]
		changed.Other++
		w.update(s, &changed)
		return true
	}}
}
