package leader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// maxRenewTimes bounds the writes of a lease that have no answer: a renewal fails earlier.
const maxRenewTimes = 64

// term is the state of this process's lease.
type term struct {
	identity string
	// duration is how long other processes respect the lease after a renewal, retry the time between two renewals.
	duration, retry time.Duration
	connection      *Connection

	mu sync.Mutex
	// attempted: a write that names this process was sent, and may have taken effect whatever was answered.
	attempted bool
	// renewed is when the last successful renewal was sent; zero until the lease is
	// acquired. renewedOn is the same by the wall clock.
	renewed, renewedOn time.Time
	id                 controller.TermID
	// seen is the newest version of the lease that was seen in this history of etcd.
	seen sight
	// renewTimes are those of the last successful renewal and of later ones without an answer.
	renewTimes []time.Time
	// confirmed is when the request was sent that last found the lease unchanged, interruptions how often the connection
	// had been interrupted by then.
	confirmed     time.Time
	interruptions int64
	// lost is closed once the lease has another holder, is another object, or went back to an earlier state; cause says which.
	lost  chan struct{}
	cause error
}

// newTerm returns the term of a lease that is not acquired yet. Leases count whole seconds.
func newTerm(identity string, duration, retry time.Duration, connection *Connection) *term {
	return &term{identity: identity, duration: duration.Truncate(time.Second), retry: retry, connection: connection,
		lost: make(chan struct{})}
}

// remaining returns how long the lease stays valid if it is never renewed again, counted
// from before the last successful renewal was sent. It is negative once the lease has
// expired or is lost.
func (t *term) remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return -1
	}
	// The monotonic clock stands still while the machine is suspended; the wall clock may be set back.
	return min(time.Until(t.renewed.Add(t.duration)), t.renewedOn.Add(t.duration).Sub(time.Now().Round(0)))
}

// request is what was known when a request of the lease was sent.
type request struct {
	sent          time.Time
	interruptions int64
	seen          sight
}

// begin is called before a request of the lease is sent.
func (t *term) begin() request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return request{sent: time.Now(), interruptions: t.connection.interruptions.Load(), seen: t.seen}
}

// recordAttempt records that a write of the lease is sent.
func (t *term) recordAttempt(lease *coordinationv1.Lease) request {
	if t.holds(lease) {
		t.mu.Lock()
		t.attempted, t.renewTimes = true, append(t.renewTimes, renewTimeOf(lease))
		t.renewTimes = t.renewTimes[max(0, len(t.renewTimes)-maxRenewTimes):]
		t.mu.Unlock()
	}
	return t.begin()
}

// recordWrite records a successful write of the lease. The first one acquires the lease.
// Other processes see the write when it was sent or later.
func (t *term) recordWrite(lease *coordinationv1.Lease, r request) {
	if !t.holds(lease) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return
	}
	acquired := t.renewed.IsZero()
	t.renewed, t.renewedOn = r.sent, r.sent.Round(0)
	if acquired {
		t.id = controller.TermID{LeaseUID: lease.UID, Transitions: ptr.Deref(lease.Spec.LeaseTransitions, 0)}
	}
	if lease.UID != t.id.LeaseUID {
		t.lose(ErrLeaseLost)
		return
	}
	t.seen, t.renewTimes = sightOf(lease), []time.Time{renewTimeOf(lease)}
	t.confirm(r)
}

// observe records the lease that was read, and returns an error if nothing may be written to it.
func (t *term) observe(lease *coordinationv1.Lease, r request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := sightOf(lease)
	switch {
	case t.cause != nil:
	case r.seen.contradicts(now):
		t.lose(ErrRestored)
	case t.renewed.IsZero():
		if !isOlder(now.version, t.seen.version) { // a watch may have shown a later one meanwhile
			t.seen = now
		}
	case !t.holds(lease) || lease.UID != t.id.LeaseUID:
		t.lose(ErrLeaseLost)
	case isNewer(now.version, t.seen.version) && !slices.ContainsFunc(t.renewTimes, renewTimeOf(lease).Equal):
		t.lose(ErrRestored)
	default:
		t.confirm(r)
	}
	if errors.Is(t.cause, ErrRestored) {
		return t.cause
	}
	return nil
}

// see records a version of the lease that a watch has shown on standby. A watch may go back in time, so an older
// version proves nothing.
func (t *term) see(lease *coordinationv1.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := sightOf(lease)
	switch {
	case t.cause != nil || !t.renewed.IsZero() || t.seen.version != "" && !isNewer(now.version, t.seen.version):
	case t.seen.contradicts(now):
		t.lose(ErrRestored)
	default:
		t.seen = now
	}
}

// confirm records that the request found the lease unchanged.
func (t *term) confirm(r request) {
	t.interruptions = max(t.interruptions, r.interruptions)
	if t.confirmed.Before(r.sent) {
		t.confirmed = r.sent
	}
}

// lose ends the term.
func (t *term) lose(cause error) {
	t.cause = cause
	close(t.lost)
}

// isConfirmed reports whether the lease was found unchanged since the connection was last interrupted and a renewal
// was due, or an error if the term is lost. A process that was frozen finds a renewal overdue.
func (t *term) isConfirmed() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.interruptions == t.connection.interruptions.Load() && time.Since(t.confirmed) <= 2*t.retry, t.cause
}

// lostBy returns why the term is lost, nil if it is not.
func (t *term) lostBy() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

func (t *term) holds(lease *coordinationv1.Lease) bool {
	return ptr.Deref(lease.Spec.HolderIdentity, "") == t.identity
}

// acquires reports whether a write of the lease would begin the term.
func (t *term) acquires(lease *coordinationv1.Lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewed.IsZero() && t.holds(lease)
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
		wait := t.remaining() - rest
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

// AcquiredFrom is the annotation of a leader Lease with the version of the Lease that its holder replaced. A process on
// standby that has seen a later version knows by it that etcd was restored, however high the versions are now.
const AcquiredFrom = "exeunt.io/acquired-from"

// sight is what a process knows of the stored Lease. In one history of etcd each version is higher than the one before.
type sight struct {
	version, acquiredFrom string
}

func sightOf(lease *coordinationv1.Lease) sight {
	return sight{version: lease.ResourceVersion, acquiredFrom: lease.Annotations[AcquiredFrom]}
}

// contradicts reports whether a Lease that was read after the sight cannot have followed it: an earlier state
// of etcd was restored in between.
func (s sight) contradicts(later sight) bool {
	return isOlder(later.version, s.version) || later.acquiredFrom != s.acquiredFrom &&
		isOlder(later.acquiredFrom, s.version)
}

// isOlder reports whether the version is known to be lower than the other one. Versions that are no numbers prove nothing.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

func isNewer(version, than string) bool { return isOlder(than, version) }

// renewTimeOf returns the time of the last renewal with the precision in which it is stored.
func renewTimeOf(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Truncate(time.Microsecond)
}
