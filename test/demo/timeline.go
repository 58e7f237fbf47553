package demo

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// patience is how long a state waits for the write that says all about it.
const patience = 2 * time.Second

// timeline sorts the events of one run by time. The caller decides how long events wait;
// the timeline reads no clock.
type timeline struct {
	gate    bool
	start   time.Time
	volumes int
	pending []Event
	written history
}

// newTimeline returns the timeline of a run with the gate on or off that begins
// at start, with no volume in the storage system.
func newTimeline(gate bool, start time.Time) *timeline {
	return &timeline{gate: gate, start: start, written: history{}}
}

// add adds an event. Events before the start of the run are dropped.
func (t *timeline) add(event Event) {
	if event.After != nil {
		t.written.add(event.After)
	}
	if !event.Time.Before(t.start) {
		t.pending = append(t.pending, event)
	}
}

// before removes and returns the events that happened before instant, oldest first; of
// two events with the same time the event that was added first. An event that is added
// after later events were returned comes with the next call, and so does a state whose write
// is not known yet.
func (t *timeline) before(instant time.Time) []Event {
	slices.SortStableFunc(t.pending, func(a, b Event) int { return a.Time.Compare(b.Time) })
	var due, pending []Event
	for _, event := range t.pending {
		limit := instant
		if event.Kind == kindState && !event.Gone && !t.isTold(event) {
			limit = instant.Add(-patience)
		}
		if event.Time.Before(limit) {
			due = append(due, event)
		} else {
			pending = append(pending, event)
		}
	}
	t.pending = pending
	return t.complete(due)
}

// isTold reports whether a write says all about a state.
func (t *timeline) isTold(state Event) bool {
	return !state.Gone && t.written.has(state.UID, state.Version)
}

// rest removes and returns all remaining events, sorted as by before.
func (t *timeline) rest() []Event {
	due := t.pending
	t.pending = nil
	slices.SortStableFunc(due, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return t.complete(due)
}

// complete sets the fields that follow from other events: what a write changed, whether a
// write says all about a state, and the number of volumes, which comes from calls and is the
// same until the next call.
func (t *timeline) complete(events []Event) []Event {
	for i := range events {
		event := &events[i]
		event.Gate = t.gate
		event.Seconds = event.Time.Sub(t.start).Seconds()
		switch {
		case event.Kind == kindCall:
			t.volumes = event.Volumes
		case event.After != nil:
			event.What = describeChange(event.Verb, t.written.before(event.After), event.After)
		case event.Kind == kindState:
			event.Told = t.isTold(*event)
		}
		event.Volumes = t.volumes
	}
	return events
}

// history are the versions of volumes and claims that writes returned. Writes may arrive
// in any order.
type history map[types.UID][]*unstructured.Unstructured

// add adds the object that a write returned.
func (h history) add(object *unstructured.Unstructured) {
	h[object.GetUID()] = append(h[object.GetUID()], object)
}

// has reports whether a write returned this version.
func (h history) has(uid types.UID, version string) bool {
	for _, object := range h[uid] {
		if object.GetResourceVersion() == version {
			return true
		}
	}
	return false
}

// before returns the object before the write that returned after, or nil if that is not
// known. A write that changes nothing returns the version that it found, and so does the
// write that removes the last finalizer of an object that is being deleted.
func (h history) before(after *unstructured.Unstructured) *unstructured.Unstructured {
	last := isDeleting(after) && len(after.GetFinalizers()) == 0
	var found *unstructured.Unstructured
	later := false
	for _, object := range h[after.GetUID()] {
		switch age := versionOf(after) - versionOf(object); {
		case object == after:
			later = true
		case age < 0 || age == 0 && later:
		case age == 0 && !last:
			return object
		case found == nil || versionOf(object) > versionOf(found):
			found = object
		}
	}
	return found
}

// versionOf returns the resource version as a number, which grows with each write.
func versionOf(object *unstructured.Unstructured) int64 {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil { // an object that was never stored
		return 0
	}
	return version
}
