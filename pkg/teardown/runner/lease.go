package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// renewals is a client of Leases that remembers when the Lease was last renewed before this process wrote it. After a
// restore of etcd that is long ago (#64).
type renewals struct {
	kubernetes.Interface

	// tell is called with an error that comes again and again.
	tell func(error)

	mu       sync.Mutex
	last     time.Time
	sealed   bool
	failures int
}

// before returns when another process last renewed the Lease, the zero time for never.
func (r *renewals) before() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *Runner) newRenewals(client kubernetes.Interface) *renewals {
	return &renewals{Interface: client, tell: r.sayFailing}
}

// ErrUnsaid: the permission has ended, and no runner has written that the teardown has stopped.
var ErrUnsaid = errors.New("the permission has ended, so nothing more is deleted, but no runner says so: see Lease " +
	LeaseName + " in namespace " + Namespace)

// overSince returns since when this process sees a permission that has ended, the zero time for another one. A leader
// writes within seconds that the teardown has stopped.
func (r *Runner) overSince(object *alive.Alive, before time.Time) time.Time {
	if !r.Command || r.unpermitted(object) != teardown.Expired {
		return time.Time{}
	}
	return cmp.Or(before, time.Now())
}

// untilOver returns when to look again at an Alive that does not change: the end of a permission is no event.
func (r *Runner) untilOver(object *alive.Alive) time.Duration {
	switch {
	case object == nil:
		return 0
	case r.permits(object):
		return object.TimeLeft(r.Clock.Now()) + time.Second
	}
	return r.Waits.Pause
}

func (r *renewals) see(lease *coordinationv1.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return
	}
	r.last = time.Time{}
	if lease.Spec.RenewTime != nil {
		r.last = lease.Spec.RenewTime.Time
	}
	for _, entry := range lease.ManagedFields { // its time is that of the API server
		if entry.Time != nil && entry.Time.After(r.last) {
			r.last = entry.Time.Time
		}
	}
}

// seal takes the answer to a write. After a conflict another process has the Lease.
func (r *renewals) seal(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = r.sealed || err == nil
	if err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		r.failures = 0
	} else if r.failures++; r.failures >= failing {
		r.tell(fmt.Errorf("write the Lease: %w", err))
	}
}

// CoordinationV1 implements [kubernetes.Interface].
func (r *renewals) CoordinationV1() coordinationv1client.CoordinationV1Interface {
	return renewalsGroup{r.Interface.CoordinationV1(), r}
}

type renewalsGroup struct {
	coordinationv1client.CoordinationV1Interface
	renewals *renewals
}

// Leases implements [coordinationv1client.LeasesGetter].
func (g renewalsGroup) Leases(namespace string) coordinationv1client.LeaseInterface {
	return renewalsClient{g.CoordinationV1Interface.Leases(namespace), g.renewals}
}

type renewalsClient struct {
	coordinationv1client.LeaseInterface
	renewals *renewals
}

// Get reads the Lease.
func (c renewalsClient) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := c.LeaseInterface.Get(ctx, name, options)
	if err == nil {
		c.renewals.see(lease)
	}
	return lease, err
}

// Create creates the Lease.
func (c renewalsClient) Create(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease, err := c.LeaseInterface.Create(ctx, lease, options)
	c.renewals.seal(err)
	return lease, err
}

// Update renews the Lease.
func (c renewalsClient) Update(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	lease, err := c.LeaseInterface.Update(ctx, lease, options)
	c.renewals.seal(err)
	return lease, err
}
