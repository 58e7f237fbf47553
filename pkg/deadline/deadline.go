package deadline

import "time"

// Staleness is how long before the request an annotation may lie. An older one belongs to an earlier Node.
const Staleness = time.Minute

// Deadline is when a termination was requested and when it ends.
type Deadline struct {
	// Requested is R.
	Requested time.Time
	// End is D. The zero time is no deadline.
	End time.Time
}

// Of returns the deadline of a termination that was requested at this time.
func Of(requested time.Time, period Period) Deadline {
	if length, limited := period.Length(); limited {
		return Deadline{requested, requested.Add(length)}
	}
	return Deadline{Requested: requested}
}

// None reports whether the termination has no deadline.
func (d Deadline) None() bool { return d.End.IsZero() }

// Annotation returns the deadline as the annotation has it, "" without a deadline.
func (d Deadline) Annotation() string {
	if d.None() {
		return ""
	}
	return d.End.UTC().Format(time.RFC3339)
}

// Tighten returns the deadline with the annotation: an earlier time wins, a later one does not count. A time more than
// a minute before the request is stale and does not count, and neither does a text that is no RFC 3339 time.
func Tighten(d Deadline, annotation string) Deadline {
	end, err := time.Parse(time.RFC3339, annotation)
	if err != nil || end.Before(d.Requested.Add(-Staleness)) {
		return d
	}
	if d.None() || end.Before(d.End) {
		d.End = end
	}
	return d
}

// Earlier returns the deadline that ends first. Both count from the earlier request.
func Earlier(a, b Deadline) Deadline {
	if b.Requested.Before(a.Requested) {
		a, b = b, a
	}
	if a.None() || !b.None() && b.End.Before(a.End) {
		a.End = b.End
	}
	return a
}
