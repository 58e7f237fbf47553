package barrier

import (
	"slices"
	"time"
)

// server is what a run knows about the API server. While the API server is away, or its storage is, every read fails,
// which says nothing about kinds. So after a failure another kind is read again: that is a check.
type server[K comparable] struct {
	// kinds are those that the API server has itself. The first one that the graph has seen is checked.
	kinds []K
	// since is since when the API server answers: since the first read of such a kind. Zero if none was read since the
	// API server was away.
	since time.Time
	// away: the last check failed.
	away bool
	// doubted: no check has begun since the last failure and succeeded. overtaken: the check that is under way began
	// earlier.
	doubted, overtaken bool
	checking           bool
	// checkedLate: a check has succeeded that began after the limit. late: the check that is under way did.
	checkedLate, late bool
	// next is when the next check may begin.
	next time.Time
}

// Vouch says that the API server itself has the objects of the kind, so that a read of the kind proves that it answers.
func (r *Run[K]) Vouch(kind K) {
	if r.kinds[kind] != nil && !slices.Contains(r.server.kinds, kind) {
		r.server.kinds = append(r.server.kinds, kind)
	}
}

// Undiscovered records that the kinds could not be discovered.
func (r *Run[K]) Undiscovered() { r.server.doubt() }

// Checked records the end of a check. After one that failed, the next that succeeds begins the run anew: the failures
// said nothing about kinds, and etcd may have been restored while the API server was away, so that what was read
// before is no more true.
func (r *Run[K]) Checked(answered bool, now time.Time) {
	s := &r.server
	s.checking = false
	switch {
	case !answered:
		s.away, s.next, s.doubted = true, now.Add(RetryTime), true
		if len(s.kinds) > 0 {
			s.kinds = append(s.kinds[1:], s.kinds[0])
		}
	case s.away:
		r.beginAnew()
	case !s.overtaken:
		s.doubted, s.checkedLate = false, s.late
	}
}

func (r *Run[K]) beginAnew() {
	s := &r.server
	s.since, s.away, s.doubted, s.checkedLate = time.Time{}, false, false, false
	r.sealed, r.complete = false, false
	clear(r.excused)
	for _, p := range r.kinds {
		p.failed, p.next = false, time.Time{}
		if p.stage == seen || p.stage == following {
			p.stage = waitingToProbe
		}
	}
}

func (s *server[K]) doubt() { s.doubted, s.overtaken = true, true }

// wake returns the earlier of the time and that when the limit ends or the next check may begin.
func (s *server[K]) wake(now time.Time, limit time.Duration, wake time.Time) time.Time {
	for _, at := range []time.Time{s.since.Add(limit), s.next} {
		if !s.since.IsZero() && now.Before(at) {
			wake = earlier(wake, at)
		}
	}
	return wake
}

// remove removes a kind that is not read any more.
func (s *server[K]) remove(kind K) {
	s.kinds = slices.DeleteFunc(s.kinds, func(other K) bool { return other == kind })
}

// answers reports whether the API server has answered after all failures, and after the limit once that has passed.
func (r *Run[K]) answers(now time.Time) bool {
	s := &r.server
	return !s.since.IsZero() && !s.away && !s.doubted && (s.checkedLate || !r.IsLate(now))
}

// beginCheck returns the kind to check, false if no check is due.
func (r *Run[K]) beginCheck(now time.Time) (kind K, due bool) {
	s := &r.server
	at := slices.IndexFunc(s.kinds, r.Saw)
	if at < 0 {
		return kind, false
	}
	if s.since.IsZero() && !s.away {
		s.since = now
	}
	if s.checking || now.Before(s.next) || r.answers(now) {
		return kind, false
	}
	s.kinds[0], s.kinds[at] = s.kinds[at], s.kinds[0]
	s.checking, s.overtaken, s.late = true, false, r.IsLate(now)
	return s.kinds[0], true
}

// awaitsCheck reports whether a kind that failed is read again after a check only.
func (r *Run[K]) awaitsCheck() bool {
	return !r.server.since.IsZero() && r.server.doubted && slices.ContainsFunc(r.server.kinds, r.Saw)
}
