package demo

import (
	"slices"
	"time"
)

// timeline sorts the events of one run by time. The caller decides how long events wait;
// the timeline reads no clock.
type timeline struct {
	gate    bool
	start   time.Time
	volumes int
	pending []Event
}

// newTimeline returns the timeline of a run with the gate on or off that begins
// at start, with no volume in the storage system.
func newTimeline(gate bool, start time.Time) *timeline {
	return &timeline{gate: gate, start: start}
}

// add adds an event. Events before the start of the run are dropped.
func (t *timeline) add(event Event) {
	if !event.Time.Before(t.start) {
		t.pending = append(t.pending, event)
	}
}

// before removes and returns the events that happened before instant, oldest first; of
// two events with the same time the event that was added first. An event that is added
// after later events were returned comes with the next call.
func (t *timeline) before(instant time.Time) []Event {
	slices.SortStableFunc(t.pending, func(a, b Event) int { return a.Time.Compare(b.Time) })
	count := slices.IndexFunc(t.pending, func(e Event) bool { return !e.Time.Before(instant) })
	if count < 0 {
		return t.rest()
	}
	due := slices.Clone(t.pending[:count])
	t.pending = slices.Delete(t.pending, 0, count)
	return t.complete(due)
}

// rest removes and returns all remaining events, sorted as by before.
func (t *timeline) rest() []Event {
	due := t.pending
	t.pending = nil
	slices.SortStableFunc(due, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return t.complete(due)
}

// complete sets the fields that follow from the order of events. The number of volumes
// comes from calls and is the same until the next call.
func (t *timeline) complete(events []Event) []Event {
	for i := range events {
		event := &events[i]
		event.Gate = t.gate
		event.Seconds = event.Time.Sub(t.start).Seconds()
		if event.Kind == kindCall {
			t.volumes = event.Volumes
		}
		event.Volumes = t.volumes
	}
	return events
}
