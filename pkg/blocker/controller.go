package blocker

import "github.com/exeunt-io/exeunt/internal/enum"

// Workload is the observed state of the workloads that run a controller.
type Workload int

const (
	// WorkloadUnseen: workloads or pods could not be listed.
	WorkloadUnseen Workload = iota
	// WorkloadAbsent: everything was listed, and nothing runs the controller.
	WorkloadAbsent
	// WorkloadStopped: the workload exists, wants no replica, and none is ready.
	WorkloadStopped
	// WorkloadUnready: replicas are wanted, none is ready, and nothing tells why.
	WorkloadUnready
	// WorkloadStarting: replicas are wanted, none is ready, and a pod is starting.
	WorkloadStarting
	// WorkloadDegraded: replicas are wanted, none is ready, and some containers of their pods report
	// an error now. Which container does the work is not known.
	WorkloadDegraded
	// WorkloadCrashing: replicas are wanted, none is ready, and their pods report an error now.
	WorkloadCrashing
	// WorkloadReady: at least one replica is ready.
	WorkloadReady
)

// String returns the name of the value.
func (w Workload) String() string {
	return enum.Name(w, "unseen", "absent", "stopped", "unready", "starting", "degraded", "crashing", "ready")
}

// LeaseState is the observed state of the Lease that a controller's leader holds.
type LeaseState int

const (
	// LeaseUnseen: Leases could not be read.
	LeaseUnseen LeaseState = iota
	// LeaseAbsent: the controller has no Lease.
	LeaseAbsent
	// LeaseHeld: the Lease was renewed within its duration, by the API server's clock.
	LeaseHeld
	// LeaseExpired: the Lease has run out, less than twice over.
	LeaseExpired
	// LeaseExpiredTwice: the Lease has run out twice over.
	LeaseExpiredTwice
)

// String returns the name of the value.
func (l LeaseState) String() string {
	return enum.Name(l, "unseen", "absent", "held", "expired", "expiredTwice")
}

// ControllerState is the observed state of a controller.
type ControllerState struct {
	Workload Workload
	Lease    LeaseState
	// Uninstalled: something that the controller's installation always has, such as its
	// namespace or its custom resource definition, is provably gone.
	Uninstalled bool
	// ReportsError: the controller reports an error for the object now.
	ReportsError bool
}

// provenGone reports whether the controller cannot act. Without a workload or a Lease there
// is no proof: managed clusters run controllers outside.
func (s ControllerState) provenGone() bool {
	switch s.Workload {
	case WorkloadStopped:
		return s.Lease == LeaseAbsent || s.Lease == LeaseExpiredTwice
	case WorkloadAbsent:
		return s.Lease == LeaseExpiredTwice || s.Lease == LeaseAbsent && s.Uninstalled
	default:
		return false
	}
}

// IsIdle reports whether replicas are ready, and none of them leads: the Lease has run out twice
// over. Only a leader works. The Lease of a program without elections counts as absent.
func (s ControllerState) IsIdle() bool {
	return s.Workload == WorkloadReady && s.Lease == LeaseExpiredTwice
}

// seenAlive reports whether a replica that may work, or a leader was seen.
func (s ControllerState) seenAlive() bool {
	return s.Workload == WorkloadReady && !s.IsIdle() || s.Workload == WorkloadStarting || s.Lease == LeaseHeld
}

// JudgeController returns why an object waits for a controller, and whether the controller
// will act.
func JudgeController(s ControllerState) (Reason, Verdict) {
	switch {
	case s.provenGone():
		return ControllerGone, Stuck
	case s.ReportsError:
		return ControllerFails, Stuck
	case s.Workload == WorkloadDegraded:
		return ControllerFails, Unknown
	case s.Workload == WorkloadCrashing && (s.Lease == LeaseHeld || s.Lease == LeaseUnseen): // a leader elsewhere, or just before its crash
		return ControllerFails, Unknown
	case s.Workload == WorkloadCrashing:
		return ControllerFails, Stuck
	case s.seenAlive():
		return ControllerActs, Waiting
	} // an idle controller is not proven gone: the times of a Lease are by the clock of its holder
	return ControllerUnseen, Unknown
}
