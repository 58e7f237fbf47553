package blocker

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/internal/enum"
)

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
	case s.Workload == WorkloadCrashing && (s.Lease == LeaseHeld ||
		s.Lease == LeaseUnseen): // a leader elsewhere, or just before its crash
		return ControllerFails, Unknown
	case s.Workload == WorkloadCrashing:
		return ControllerFails, Stuck
	case s.seenAlive():
		return ControllerActs, Waiting
	} // an idle controller is not proven gone: the times of a Lease are by the clock of its holder
	return ControllerUnseen, Unknown
}

// Verdict says whether the deletion of an object will come to its end. Higher values are
// worse.
type Verdict int

// The verdicts, from the best to the worst.
const (
	Gone Verdict = iota
	None
	Waiting
	Unknown
	Stuck
)

// String returns the verdict as the JSON output has it.
func (v Verdict) String() string {
	return enum.Name(v, "gone", "none", "waiting", "unknown", "stuck")
}

// MarshalText returns the verdict for JSON and YAML.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the verdict from JSON and YAML.
func (v *Verdict) UnmarshalText(text []byte) error {
	for candidate := Gone; candidate <= Stuck; candidate++ {
		if candidate.String() == string(text) {
			*v = candidate
			return nil
		}
	}
	return fmt.Errorf("parse verdict %q: want gone, none, waiting, unknown or stuck", text)
}

// Worst returns the worst verdict of the blockers and their blockers, or None without any.
func Worst(blockers []Blocker) Verdict {
	worst := None
	for _, blocker := range blockers {
		worst = max(worst, blocker.Verdict, Worst(blocker.Blockers))
	}
	return worst
}

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
