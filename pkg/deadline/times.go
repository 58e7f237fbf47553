package deadline

import (
	"math"
	"time"
)

const (
	// Unmounting is the time between the end of all grace periods and the deadline.
	Unmounting = 5 * time.Second
	// Detaching is the same while a volume is attached to the node.
	Detaching = 30 * time.Second
	// LateStop is the time from the first action to Stop, if the first action comes 5 s before the deadline or later.
	LateStop = 10 * time.Second
	// Shortening is how long before P the grace period of a Terminating pod is cut.
	Shortening = 5 * time.Second
	// Tolerance is how long after P the grace period of a pod may end: the API server counts from when it stores the
	// deletion, and grace periods are whole seconds.
	Tolerance = time.Second
)

// Times are the times of one termination. Without a deadline they are zero.
type Times struct {
	// GraceEnds is P.
	GraceEnds time.Time
	// Stop is E.
	Stop time.Time
	// Late: the first action came at the P of a node without volumes, or later. Each pod gets a grace period of one second.
	Late bool
}

// Times returns the times of a termination whose first action came at this time, and while a volume is attached to the
// node or not. Volumes move P only: the time of Stop, and whether the first action was late, never change with them.
func (d Deadline) Times(firstAction time.Time, attached bool) Times {
	if d.None() {
		return Times{}
	}
	graceEnds := d.before(Unmounting)
	if !firstAction.Before(graceEnds) {
		return Times{GraceEnds: graceEnds, Stop: firstAction.Add(LateStop), Late: true}
	}
	if attached {
		graceEnds = d.before(Detaching)
	}
	return Times{GraceEnds: graceEnds, Stop: d.End}
}

// before returns P for this time to unmount, which is a quarter of the period at most.
func (d Deadline) before(rest time.Duration) time.Time {
	return d.End.Add(-max(0, min(rest, d.End.Sub(d.Requested)/4)))
}

// None reports whether the termination has no deadline.
func (t Times) None() bool { return t.Stop.IsZero() }

// Due reports whether the time of a deadline has come. The zero time never comes.
func Due(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// Forced returns L: when a pod with this grace period is deleted, whatever refuses its eviction. It may lie before the
// request. It is the zero time without a deadline.
func (t Times) Forced(grace time.Duration) time.Time {
	if t.None() {
		return time.Time{}
	}
	return t.GraceEnds.Add(-grace)
}

// Grace returns the seconds that a pod gets of its grace period if it is deleted now: all of it if it ends by P, to the
// nearest second, so that a timer that fires just after L takes nothing. It is never 0, because 0 removes a pod whose
// containers run.
func (t Times) Grace(grace time.Duration, now time.Time) int64 {
	if !t.None() {
		grace = min(grace, t.GraceEnds.Sub(now))
	}
	return max(1, int64(grace.Round(time.Second)/time.Second))
}

// Seconds returns a number of seconds as a duration of at most 292 years, at least 0.
func Seconds(seconds int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(max(seconds, 0), most)) * time.Second
}
