package blocker

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// leaseDefault is the usual duration of a leader Lease. It stands in for the duration of a Lease
// without one, and of a released Lease, whose duration is 1 s: the next leader needs longer.
const leaseDefault = 15 * time.Second

// JudgeLease returns the state of the Lease at the time, which is by the API server's clock. It
// is the one rule for Leases of leaders and of nodes.
func JudgeLease(lease *coordinationv1.Lease, now time.Time) LeaseState {
	switch late := now.Sub(LeaseEnd(lease)); {
	case late > leaseDuration(lease):
		return LeaseExpiredTwice
	case late > 0 || LeaseHolder(lease) == "":
		return LeaseExpired
	default:
		return LeaseHeld
	}
}

// LeaseEnd returns when the Lease ran out or runs out.
func LeaseEnd(lease *coordinationv1.Lease) time.Time {
	return LeaseRenewed(lease).Add(leaseDuration(lease))
}

// LeaseRenewed returns when the Lease was renewed last. A Lease that a user applied was never
// renewed: its creation counts.
func LeaseRenewed(lease *coordinationv1.Lease) time.Time {
	switch {
	case lease.Spec.RenewTime != nil:
		return lease.Spec.RenewTime.Time
	case lease.Spec.AcquireTime != nil:
		return lease.Spec.AcquireTime.Time
	}
	return lease.CreationTimestamp.Time
}

// LeaseHolder returns the identity of the leader, "" if the Lease is released.
func LeaseHolder(lease *coordinationv1.Lease) string {
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func leaseDuration(lease *coordinationv1.Lease) time.Duration {
	seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	if seconds <= 0 || LeaseHolder(lease) == "" {
		return leaseDefault
	}
	return time.Duration(seconds) * time.Second
}
