package program

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// term is the state of this process's lease.
type term struct {
	identity string
	// duration is how long other processes respect the lease after a renewal.
	duration time.Duration

	mu sync.Mutex
	// attempted: a write that names this process was sent, and may have taken effect whatever was answered.
	attempted bool
	// renewed is when the last successful renewal was sent; zero until the lease is
	// acquired. renewedOn is the same by the wall clock.
	renewed, renewedOn time.Time
	id                 controller.TermID
	// lost is closed once the lease has another holder, or is another object.
	lost   chan struct{}
	isLost bool
}

// newTerm returns the term of a lease that is not acquired yet. Leases count whole seconds.
func newTerm(identity string, duration time.Duration) *term {
	return &term{identity: identity, duration: duration.Truncate(time.Second), lost: make(chan struct{})}
}

// Remaining implements [controller.Term].
func (t *term) Remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isLost {
		return -1
	}
	// The monotonic clock stands still while the machine is suspended; the wall clock may be set back.
	return min(time.Until(t.renewed.Add(t.duration)), t.renewedOn.Add(t.duration).Sub(time.Now().Round(0)))
}

// ID implements [controller.Term].
func (t *term) ID() controller.TermID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// recordWrite records a successful write of the lease that was sent at the time. The first
// one acquires the lease. Other processes see the write at that time or later.
func (t *term) recordWrite(lease *coordinationv1.Lease, sent time.Time) {
	if !t.holds(lease) {
		return
	}
	t.mu.Lock()
	acquired := t.renewed.IsZero()
	t.renewed, t.renewedOn = sent, sent.Round(0)
	if acquired {
		t.id = controller.TermID{LeaseUID: lease.UID, Transitions: ptr.Deref(lease.Spec.LeaseTransitions, 0)}
	}
	t.mu.Unlock()
	t.observe(lease)
}

// observe records the lease that the API server returned.
func (t *term) observe(lease *coordinationv1.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewed.IsZero() || t.isLost || t.holds(lease) && lease.UID == t.id.LeaseUID {
		return
	}
	t.isLost = true
	close(t.lost)
}

func (t *term) holds(lease *coordinationv1.Lease) bool {
	return ptr.Deref(lease.Spec.HolderIdentity, "") == t.identity
}

// recordAttempt records that a write of the lease is sent.
func (t *term) recordAttempt(lease *coordinationv1.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempted = t.attempted || t.holds(lease)
}

// mayHold reports whether the lease may name this process.
func (t *term) mayHold() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attempted
}

// await returns once at most the rest of the lease remains, or the lease is lost, or the
// context has ended.
func (t *term) await(ctx context.Context, rest time.Duration) {
	for {
		wait := t.Remaining() - rest
		if wait <= 0 {
			return
		}
		select {
		case <-time.After(wait): // check again: the lease may have been renewed
		case <-t.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}
