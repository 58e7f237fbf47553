package nodes

import (
	"time"

	"github.com/exeunt-io/exeunt/pkg/deadline"
)

// Second is a time in seconds after the Node was deleted.
type Second uint16

const (
	// period is that of each node with a deadline.
	period Second = 600
	// usual and long are grace periods. The long one is longer than the period.
	usual, long Second = 10, 1200
	// unparsable is an annotation that is no time.
	unparsable Second = 1
	// earlier and later than the deadline of the period.
	earlier, later Second = 300, 900
)

// requested is when each Node was deleted: it does not matter which one was first.
var requested = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	// coarse are the instants at which most changes: the start, L with a disk, and E.
	coarse = []Second{0, 560, 600}
	// fine are all: a pod that a silent kubelet has not ended is overdue; L and P with a disk; P without one; E.
	fine = []Second{0, 320, 560, 570, 595, 600}
)

// at returns the time as the API server has it.
func (t Second) at() time.Time { return requested.Add(t.length()) }

// length returns the time as a length.
func (t Second) length() time.Duration { return time.Duration(t) * time.Second }

// text returns the annotation.
func (t Second) text() string {
	if t == unparsable {
		return "tomorrow"
	}
	return t.deadline().Annotation()
}

// deadline returns the deadline that ends at the time, none for 0.
func (t Second) deadline() deadline.Deadline {
	d := deadline.Deadline{Requested: requested}
	if t != 0 {
		d.End = t.at()
	}
	return d
}

// seconds returns when the deadline ends, 0 for none.
func seconds(d deadline.Deadline) Second {
	if d.None() {
		return 0
	}
	return Second(d.End.Sub(requested) / time.Second)
}

// obey returns the deadline that the leader obeys once it sees the annotation. It was obeyed before, 0 for none yet.
func (w World) obey(obeyed, annotation Second) Second {
	if obeyed != 0 && (annotation == 0 || annotation == obeyed) {
		return obeyed
	}
	d := obeyed.deadline()
	if w.Deadline {
		d = deadline.Earlier(d, deadline.Of(requested, deadline.Limited(period.length())))
	}
	if w.Tighten != nil {
		return seconds(w.Tighten(d, annotation.text()))
	}
	return seconds(deadline.Tighten(d, annotation.text()))
}

// times returns the times of a termination whose first action came at once.
func times(end Second, attached bool) deadline.Times {
	return end.deadline().Times(requested, attached)
}

// now is the time since the Node was deleted.
func (w World) now(s *State, n int) Second { return w.instants()[s.Age[n]] }

func (w World) instants() []Second {
	if w.Fine {
		return fine
	}
	return coarse
}

// grace is the grace period of the pod.
func (w World) grace(i int) Second {
	if w.Long && i == db {
		return long
	}
	return usual
}
