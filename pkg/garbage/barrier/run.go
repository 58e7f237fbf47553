package barrier

import (
	"time"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// FollowTime is how long a run waits for the watch of a kind. Quiet kinds get a bookmark
	// a minute.
	FollowTime = 200 * time.Millisecond
	// RetryTime is the time between two attempts to read a kind.
	RetryTime = time.Second
)

// Request is a read that a run needs.
type Request int

const (
	// Probe reads the present version of the kind.
	Probe Request = iota
	// List lists the kind into the graph.
	List
	// Check reads a kind that the graph has seen: the API server answers, so that another kind fails by itself.
	Check
)

// String returns the name of the value.
func (r Request) String() string { return enum.Name(r, "Probe", "List", "Check") }

// Result is what a run has come to.
type Result int

const (
	// Running: the run goes on.
	Running Result = iota
	// Passed: the graph has seen every kind.
	Passed
	// PassedWithout: the graph has seen every kind but those that cannot be read.
	PassedWithout
)

// String returns the name of the value.
func (r Result) String() string { return enum.Name(r, "Running", "Passed", "PassedWithout") }

// stage of a kind.
type stage int

const (
	waitingToProbe stage = iota
	probing
	following
	listing
	seen
)

// Run is one barrier. It is not safe for concurrent use.
type Run[K comparable] struct {
	kinds map[K]*progress
	// excused are kinds that the former run passed without. A read of one may take until the limit.
	excused map[K]bool
	// sealed: the run may pass. complete: all kinds that exist were added.
	sealed, complete bool
	limit            time.Duration
	server           server[K]
}

// progress of one kind.
type progress struct {
	stage stage
	// version is what the graph has to reach.
	version string
	// reached is how far the watch had come when the last request was sent.
	reached string
	// next is when the next request is due.
	next time.Time
	// failed: the last request failed. unlisted: the last list did, so that a probe proves nothing.
	failed, unlisted bool
}

// Begin begins a run. Kinds that cannot be read no longer count once the API server has answered for the limit.
func Begin[K comparable](limit time.Duration) *Run[K] {
	return &Run[K]{kinds: map[K]*progress{}, excused: map[K]bool{}, limit: limit}
}

// Add adds a kind, if the run does not have it.
func (r *Run[K]) Add(kind K) {
	if r.kinds[kind] == nil {
		r.kinds[kind] = &progress{}
	}
}

// Remove removes a kind that no longer exists.
func (r *Run[K]) Remove(kind K) {
	delete(r.kinds, kind)
	r.server.remove(kind)
}

// Replace replaces a kind whose watch was replaced. The new one is read anew.
func (r *Run[K]) Replace(old, kind K) {
	if r.kinds[old] != nil {
		r.Remove(old)
		r.Add(kind)
	}
}

// Excuse says that the former run passed without the kind: this one does once a read has failed again.
func (r *Run[K]) Excuse(kind K) { r.excused[kind] = true }

// Seal lets the run pass: all kinds were added. If it is not complete, the run passes without kinds that nobody
// can name, unless it is sealed again before it ends.
func (r *Run[K]) Seal(complete bool) { r.sealed, r.complete = true, complete }

// IsComplete reports whether the run is sealed and complete.
func (r *Run[K]) IsComplete() bool { return r.sealed && r.complete }

// Next returns the reads that are due, each once, and when to call Next again; zero if only
// the end of a read or a new version of the graph changes anything.
func (r *Run[K]) Next(now time.Time) (requests map[K]Request, wake time.Time) {
	requests = map[K]Request{}
	if kind, due := r.beginCheck(now); due {
		requests[kind] = Check
	}
	for kind, p := range r.kinds {
		switch {
		case p.stage != waitingToProbe && p.stage != following, p.failed && r.awaitsCheck():
		case now.Before(p.next):
			wake = earlier(wake, p.next)
		case p.stage == waitingToProbe:
			requests[kind], p.stage = Probe, probing
		default:
			requests[kind], p.stage = List, listing
		}
	}
	return requests, r.server.wake(now, r.limit, wake)
}

// earlier returns the earlier time; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Probed records the present version of the kind, and the version of the graph.
func (r *Run[K]) Probed(kind K, version, known string, now time.Time) {
	p := r.kinds[kind]
	if p == nil || p.stage != probing {
		return
	}
	p.stage, p.version, p.failed, p.next = following, version, p.unlisted, now.Add(FollowTime)
	if _, integers := graph.Compare(version, version); !integers {
		p.next = now
	}
	r.Reached(kind, known)
}

// Reached records that the watch brought the graph to the version of the kind.
func (r *Run[K]) Reached(kind K, version string) {
	p := r.kinds[kind]
	if p == nil || p.stage != following && p.stage != listing {
		return
	}
	if order, integers := graph.Compare(version, p.version); integers && order >= 0 {
		p.stage = seen
	}
}

// NoteReached notes how far the watch of the kind has come before a request is sent.
func (r *Run[K]) NoteReached(kind K, version string) {
	if p := r.kinds[kind]; p != nil {
		p.reached = version
	}
}

// ReachedBefore returns how far the watch of the kind had come before the last request was sent.
func (r *Run[K]) ReachedBefore(kind K) string {
	if p := r.kinds[kind]; p != nil {
		return p.reached
	}
	return ""
}

// Seen records that the graph has the kind as of a read that began within the run.
func (r *Run[K]) Seen(kind K) {
	if p := r.kinds[kind]; p != nil {
		p.stage, p.failed, p.reached = seen, false, ""
	}
}

// Failed records that a read of the kind failed. The kind is probed again later.
func (r *Run[K]) Failed(kind K, now time.Time) {
	if p := r.kinds[kind]; p != nil && p.stage != seen {
		p.unlisted = p.unlisted || p.stage == listing
		p.stage, p.failed, p.next = waitingToProbe, true, now.Add(RetryTime)
		r.server.doubt()
	}
}

// Postponed records that the API server was too busy for a read of the kind, which is probed again at
// the time. The kind does not count as one that cannot be read.
func (r *Run[K]) Postponed(kind K, until time.Time) {
	if p := r.kinds[kind]; p != nil && p.stage != seen {
		p.stage, p.failed, p.next = waitingToProbe, false, until
	}
}

// Saw reports whether the graph has seen the kind.
func (r *Run[K]) Saw(kind K) bool { p := r.kinds[kind]; return p != nil && p.stage == seen }

// HasFailed reports whether the last read of the kind failed.
func (r *Run[K]) HasFailed(kind K) bool { p := r.kinds[kind]; return p != nil && p.failed }

// IsLate reports whether the limit has passed since the API server answers.
func (r *Run[K]) IsLate(now time.Time) bool {
	return !r.server.since.IsZero() && now.Sub(r.server.since) >= r.limit
}

// passesWithout reports whether the run need not wait for a kind that the graph has not seen: two of these are so:
// a read failed, the former run passed without it, and the limit has passed.
func (r *Run[K]) passesWithout(kind K, p *progress, now time.Time) bool {
	late := r.IsLate(now)
	return p.failed && (late || r.excused[kind]) || late && r.excused[kind]
}

// Result returns what the run has come to, and the kinds that it passed without. It passes without a kind only if the
// API server has answered a check since: an API server that is away says nothing about kinds.
func (r *Run[K]) Result(now time.Time) (Result, []K) {
	var unseen []K
	for kind, p := range r.kinds {
		switch {
		case p.stage == seen:
		case r.passesWithout(kind, p, now):
			unseen = append(unseen, kind)
		default:
			return Running, nil
		}
	}
	without := len(unseen) > 0 || !r.complete
	switch {
	case !r.sealed:
		return Running, nil
	case without && !r.answers(now):
		return Running, nil
	case without:
		return PassedWithout, unseen
	}
	return Passed, nil
}
