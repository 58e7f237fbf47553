package volume

import "github.com/exeunt-io/exeunt/pkg/blocker"

// workloads ranks what is seen of two programs each of which may act: the better one counts,
// and one that was not seen may be as good as alive.
var workloads = map[blocker.Workload]int{
	blocker.WorkloadReady: 6, blocker.WorkloadStarting: 5, blocker.WorkloadUnseen: 4, blocker.WorkloadUnready: 3,
	blocker.WorkloadCrashing: 2, blocker.WorkloadStopped: 1, blocker.WorkloadAbsent: 0,
}

var leases = map[blocker.LeaseState]int{
	blocker.LeaseHeld: 4, blocker.LeaseUnseen: 3, blocker.LeaseExpired: 2, blocker.LeaseExpiredTwice: 1, blocker.LeaseAbsent: 0,
}

// Either returns the state of two controllers each of which may act.
func Either(a, b blocker.ControllerState) blocker.ControllerState {
	if workloads[b.Workload] > workloads[a.Workload] {
		a.Workload = b.Workload
	}
	if leases[b.Lease] > leases[a.Lease] {
		a.Lease = b.Lease
	}
	a.Uninstalled = a.Uninstalled && b.Uninstalled
	a.ReportsError = a.ReportsError || b.ReportsError
	return a
}

// Clearer reports whether more was seen of a than of b.
func Clearer(a, b blocker.ControllerState) bool {
	return clarity(a.Workload) > clarity(b.Workload)
}

func clarity(w blocker.Workload) int {
	if w == blocker.WorkloadUnseen {
		return 0
	}
	return workloads[w]
}
