package program

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

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
	return isOlder(later.version, s.version) || later.acquiredFrom != s.acquiredFrom && isOlder(later.acquiredFrom, s.version)
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
