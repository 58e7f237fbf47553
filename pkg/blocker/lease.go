package blocker

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// shortestLease is the shortest duration that counts. A leader that steps down leaves a
// Lease of one second behind, and the next leader needs a moment to take it.
const shortestLease = 15 * time.Second

// JudgeLease returns the state of the Lease at the time, which is by the API server's clock.
// A Lease that was never renewed counts as expired once: its holder may be starting.
func JudgeLease(lease *coordinationv1.Lease, now time.Time) LeaseState {
	if lease.Spec.RenewTime == nil {
		return LeaseExpired
	}
	duration := shortestLease
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		duration = max(duration, time.Duration(*seconds)*time.Second)
	}
	switch age := now.Sub(lease.Spec.RenewTime.Time); {
	case age <= duration:
		return LeaseHeld
	case age <= 2*duration:
		return LeaseExpired
	}
	return LeaseExpiredTwice
}
