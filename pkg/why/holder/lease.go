package holder

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// leaseDefault is the usual duration of a leader Lease. It stands in for the duration of a
// Lease without one, and of a released Lease, whose duration is 1 s: the next leader of a
// rolling update needs longer.
const leaseDefault = 15 * time.Second

// leaseState returns the state of the freshest Lease, and that Lease. LeaseAbsent without any.
func leaseState(leases []coordinationv1.Lease, now time.Time) (blocker.LeaseState, *coordinationv1.Lease) {
	if len(leases) == 0 {
		return blocker.LeaseAbsent, nil
	}
	freshest := slices.MaxFunc(leases, func(a, b coordinationv1.Lease) int {
		return cmp.Or(leaseEnd(a).Compare(leaseEnd(b)), -cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	switch late := now.Sub(leaseEnd(freshest)); {
	case late > leaseDuration(freshest):
		return blocker.LeaseExpiredTwice, &freshest
	case late > 0 || leaseHolder(freshest) == "":
		return blocker.LeaseExpired, &freshest
	default:
		return blocker.LeaseHeld, &freshest
	}
}

// leaseEnd returns when the Lease ran out or runs out.
func leaseEnd(lease coordinationv1.Lease) time.Time {
	renewed := lease.CreationTimestamp.Time
	switch {
	case lease.Spec.RenewTime != nil:
		renewed = lease.Spec.RenewTime.Time
	case lease.Spec.AcquireTime != nil:
		renewed = lease.Spec.AcquireTime.Time
	}
	return renewed.Add(leaseDuration(lease))
}

func leaseDuration(lease coordinationv1.Lease) time.Duration {
	seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	if seconds <= 0 || leaseHolder(lease) == "" {
		return leaseDefault
	}
	return time.Duration(seconds) * time.Second
}

// leaseHolder returns the identity of the leader, "" if the Lease is released.
func leaseHolder(lease coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }
