package garbage

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// commit stores the object, or removes that of the slot if it is nil.
func (w *world) commit(s *State, slot int, o *Object) {
	old, kind := s.objects[slot], w.config.Slots[slot].Kind
	version := w.count(s, kind)
	event := Event{Object: old, Deleted: true, Version: version}
	if o != nil {
		stored := *o
		stored.Version = version
		o, event = &stored, Event{Object: &stored, Version: version}
	}
	s.objects[slot] = o
	if !s.restored || version > s.views[kind].version { // a watch begins after the version that it had come to
		s.views[kind].events = append(s.views[kind].events, event)
	}
	w.remember(s, slot, old, o)
}

// count returns the next version of the kind.
func (w *world) count(s *State, kind int) int {
	s.counters[kind]++
	if w.config.OneCounter {
		for k := range w.config.Kinds {
			s.counters[k] = s.counters[kind]
		}
	}
	return s.counters[kind]
}

// remember updates what the rules need to know of the past.
func (w *world) remember(s *State, slot int, old, o *Object) {
	all, blocking := w.references(s)
	for i := range s.before {
		s.before[i] &= all
		s.blockers[i] &= blocking
	}
	s.witness[slot] = 0
	was, is := old != nil && old.waits(), o != nil && o.waits()
	if is && (!was || old.Orphan != o.Orphan) {
		s.before[slot], s.blockers[slot] = all, blocking
	} else if !is {
		s.before[slot], s.blockers[slot] = 0, 0
	}
	s.endPolicies(slot, old, o)
}

// endPolicies records which policy of a deletion has ended now, and that the owner lives no longer.
func (s *State) endPolicies(slot int, old, o *Object) {
	if old != nil && old.orphans() && (o == nil || !o.orphans()) {
		s.sinceOrphan[slot] = 0
	}
	if old != nil && old.inForeground() && (o == nil || !o.inForeground()) {
		s.sinceForeground[slot] = 0
	}
	if old != nil && !old.waits() && (o == nil || o.waits()) {
		s.sinceLive[slot] = 0
	}
}

// at returns the object at the coordinates, and its slot; -1 if there is no slot.
func (w *world) at(s *State, kind int, namespace, name string) (*Object, int) {
	for i, slot := range w.config.Slots {
		if slot.Kind == kind && slot.Name == name && w.config.namespaceOf(slot) == namespace {
			return s.objects[i], i
		}
	}
	return nil, -1
}

// listed returns the objects of the kind in the namespace, "" for all.
func (w *world) listed(s *State, kind int, namespace string) []*Object {
	var found []*Object
	for i, slot := range w.config.Slots {
		if o := s.objects[i]; o != nil && slot.Kind == kind && (namespace == "" || w.config.namespaceOf(slot) == namespace) {
			found = append(found, o)
		}
	}
	return found
}

// delete deletes the object with the options, as the API server does. It returns the object that
// is left, nil for none.
func (w *world) delete(s *State, o *Object, options *metav1.DeleteOptions) (*Object, error) {
	slot := w.config.Slots[o.Slot]
	kind := w.config.Kinds[slot.Kind]
	if p := options.Preconditions; p != nil &&
		(p.UID != nil && *p.UID != uid(slot, o.Incarnation) || p.ResourceVersion != nil &&
			*p.ResourceVersion != kind.version(o.Version)) {
		return nil, apierrors.NewConflict(kind.GroupResource(), slot.Name, errors.New("the precondition fails"))
	}
	deleted := *o
	deleted.Deleting = true
	if policy := options.PropagationPolicy; policy != nil {
		deleted.Foreground, deleted.Orphan = *policy == metav1.DeletePropagationForeground,
			*policy == metav1.DeletePropagationOrphan
	}
	switch {
	case len(deleted.finalizers()) == 0:
		w.commit(s, o.Slot, nil)
		return nil, nil
	case o.Deleting && o.Foreground == deleted.Foreground && o.Orphan == deleted.Orphan:
		return o, nil
	}
	w.commit(s, o.Slot, &deleted)
	return s.objects[o.Slot], nil
}

// update stores a changed object, and removes it if nothing keeps it any more. It returns the
// object as the answer has it.
func (w *world) update(s *State, o *Object) *Object {
	if o.Deleting && len(o.finalizers()) == 0 {
		w.commit(s, o.Slot, nil)
		return o
	}
	w.commit(s, o.Slot, o)
	return s.objects[o.Slot]
}

// errForeign is the error of a patch of what is none of a collector's business.
var errForeign = errors.New("a patch changes more than references and finalizers")

// patched returns the object after the JSON patch.
func (w *world) patched(o *Object, body string) (*Object, error) {
	slot := w.config.Slots[o.Slot]
	operations, err := jsonpatch.DecodePatch([]byte(body))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	before, err := json.Marshal(w.config.metadata(o))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", slot.Name, err)
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "", err.Error(), 0, false,
		)
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(after, &object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	changed, known := o.withFinalizers(object.Finalizers)
	changed.Refs = nil
	for _, r := range object.OwnerReferences {
		for kind := range w.config.Kinds {
			if w.config.Kinds[kind].GroupVersionKind.Kind == r.Kind {
				changed.Refs = append(changed.Refs, Ref{
					Owner: r.UID, Kind: kind, Name: r.Name, Blocks: r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion,
				})
			}
		}
	}
	if !known || !apiequality.Semantic.DeepEqual(&object, w.config.metadata(changed)) {
		return nil, errForeign
	}
	return changed, nil
}

// policy returns the policy for options.
func policy(p metav1.DeletionPropagation) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: &p}
}

// reference returns a reference to the object in the slot now.
func (w *world) reference(s *State, slot int, blocks bool) Ref {
	return Ref{
		Owner: w.uidAt(slot, s.incarnations[slot]), Kind: w.config.Slots[slot].Kind, Name: w.config.Slots[slot].Name,
		Blocks: blocks,
	}
}

func (w *world) uidAt(slot, incarnation int) types.UID { return uid(w.config.Slots[slot], incarnation) }
