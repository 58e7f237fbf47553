package holder

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// leaseState returns the state of the freshest Lease, and that Lease. LeaseAbsent without any.
func leaseState(leases []coordinationv1.Lease, now time.Time) (blocker.LeaseState, *coordinationv1.Lease) {
	if len(leases) == 0 {
		return blocker.LeaseAbsent, nil
	}
	freshest := slices.MaxFunc(leases, func(a, b coordinationv1.Lease) int {
		return cmp.Or(leaseEnd(a).Compare(leaseEnd(b)), -cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	return blocker.JudgeLease(&freshest, now), &freshest
}

// leaseEnd returns when the Lease ran out or runs out.
func leaseEnd(lease coordinationv1.Lease) time.Time { return blocker.LeaseEnd(&lease) }

// leaseHolder returns the identity of the leader, "" if the Lease is released.
func leaseHolder(lease coordinationv1.Lease) string { return blocker.LeaseHolder(&lease) }

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
