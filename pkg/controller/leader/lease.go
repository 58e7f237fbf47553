package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// leaseGetter returns lease clients that record the result of each request in the term and
// bound each request by the timeout, so that a hanging API server leaves time for a retry.
type leaseGetter struct {
	coordinationv1client.LeasesGetter
	term    *term
	timeout time.Duration
}

// Leases implements [coordinationv1client.LeasesGetter].
func (g leaseGetter) Leases(namespace string) coordinationv1client.LeaseInterface {
	return leaseClient{g.LeasesGetter.Leases(namespace), g.term, g.timeout}
}

type leaseClient struct {
	coordinationv1client.LeaseInterface
	term    *term
	timeout time.Duration
}

// Get implements [coordinationv1client.LeaseInterface]. It returns an error instead of a lease that is older than the
// one which this process knows: nothing may be written to it.
func (c leaseClient) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(withoutGuard(ctx), c.timeout)
	defer cancel()
	request := c.term.begin()
	lease, err := c.LeaseInterface.Get(ctx, name, options)
	if err != nil {
		return nil, c.failed(err)
	}
	if err := c.term.observe(lease, request); err != nil {
		return nil, err
	}
	return lease, nil
}

// Create implements [coordinationv1client.LeaseInterface]. Beside an error it returns an empty lease: client-go keeps the
// result, and panics on nil when it sends the event that this process no longer leads.
func (c leaseClient) Create(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	created, err := c.write(ctx, lease, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return c.LeaseInterface.Create(ctx, lease, options)
	})
	if err != nil {
		return &coordinationv1.Lease{}, err
	}
	return created, nil
}

// errUnreadLease: the lease could not be created, and was not read since.
var errUnreadLease = errors.New("the lease was not read since it could not be created")

// Update implements [coordinationv1client.LeaseInterface]. The write that acquires the lease says which version it replaces.
func (c leaseClient) Update(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if lease.Name == "" {
		return nil, errUnreadLease
	}
	if c.term.acquires(lease) {
		lease = lease.DeepCopy()
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AcquiredFrom, lease.ResourceVersion)
	}
	return c.write(ctx, lease, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return c.LeaseInterface.Update(ctx, lease, options)
	})
}

// write sends a write and records the result. After a restore nothing is written: the lease as it is shows every process
// on standby that etcd was restored.
func (c leaseClient) write(ctx context.Context, lease *coordinationv1.Lease,
	send func(context.Context) (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	if err := c.term.lostBy(); errors.Is(err, ErrRestored) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(withoutGuard(ctx), c.timeout)
	defer cancel()
	request := c.term.recordAttempt(lease)
	written, err := send(ctx)
	if err != nil {
		return nil, c.failed(err)
	}
	c.term.recordWrite(written, request)
	return written, nil
}

// failed counts a request without an answer of the API server about the lease as an interruption of the connection.
func (c leaseClient) failed(err error) error {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) &&
		!errors.Is(err, context.Canceled) {
		c.term.connection.interrupt()
	}
	return err
}

// removeHolder removes this process from the lease, if it still is the holder, so that
// another process need not wait until the lease expires.
func removeHolder(ctx context.Context, leases coordinationv1client.LeaseInterface, name string, term *term) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil || !term.holds(lease) {
			return err
		}
		lease = lease.DeepCopy()
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
		lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release lease %s: %w", name, err)
	}
	return nil
}
