package holder

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
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

// isStandby reports whether the Lease is that of deploy/pv-controller/standby, which no replica holds.
func isStandby(lease coordinationv1.Lease) bool {
	return lease.Namespace == cluster.ControlPlane && lease.Name == cluster.PVControllerLease && leaseHolder(lease) == cluster.StandbyHolder
}

// besideStandby returns the state of a controller beside its standby Lease, which is no sign of life.
// lease is the state of its other Leases.
func besideStandby(workload blocker.Workload, lease blocker.LeaseState) blocker.ControllerState {
	alive := workload == blocker.WorkloadReady || workload == blocker.WorkloadStarting
	switch {
	case !alive, lease == blocker.LeaseHeld:
		return blocker.ControllerState{Workload: workload, Lease: lease}
	case lease == blocker.LeaseAbsent, lease == blocker.LeaseExpiredTwice: // its replicas wait
		return blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseAbsent}
	}
	return blocker.ControllerState{} // another Lease may have a leader
}
