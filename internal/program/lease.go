package program

import (
	"context"
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

// Get implements [coordinationv1client.LeaseInterface].
func (c leaseClient) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	lease, err := c.LeaseInterface.Get(ctx, name, options)
	if err == nil {
		c.term.observe(lease)
	}
	return lease, err
}

// Create implements [coordinationv1client.LeaseInterface].
func (c leaseClient) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	sent := time.Now()
	c.term.recordAttempt(lease)
	created, err := c.LeaseInterface.Create(ctx, lease, options)
	if err == nil {
		c.term.recordWrite(created, sent)
	}
	return created, err
}

// Update implements [coordinationv1client.LeaseInterface].
func (c leaseClient) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	sent := time.Now()
	c.term.recordAttempt(lease)
	updated, err := c.LeaseInterface.Update(ctx, lease, options)
	if err == nil {
		c.term.recordWrite(updated, sent)
	}
	return updated, err
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
