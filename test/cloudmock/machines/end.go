package machines

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
)

// leastGrace is the time that a kubelet gives containers at least, in seconds.
const leastGrace = 2

// ending is how a kubelet ends the containers of a pod.
type ending struct {
	// grace is the grace period in force, in seconds, 0 before the first; kubelet is the kubelet that counts.
	grace   int64
	kubelet int
	killAt  time.Time
	// exitAt is when the containers end by themselves, or zero.
	exitAt time.Time
}

// terminate ends the containers: SIGTERM, and SIGKILL when the grace period is over.
func (p *pod) terminate(ctx context.Context) bool {
	var e ending
	return p.until(ctx, func(now time.Time) (bool, time.Time) {
		if !p.running {
			return true, time.Time{}
		}
		if e.grace == 0 && p.machine.kubeletRuns() {
			p.machine.cloud.write(p.event(Sigterm, ""))
			e.exitAt = earliest(time.Time{}, exitTime(p.seen, now), p.finishAt())
		}
		if !e.exitAt.IsZero() && !now.Before(e.exitAt) {
			p.exit(now, 0)
			return true, time.Time{}
		}
		if !p.machine.kubeletRuns() {
			return false, earliest(now, e.exitAt)
		}
		e.count(p.seen, p.machine.kubelets, now)
		if !now.Before(e.killAt) {
			p.machine.cloud.write(p.event(Sigkill, ""))
			p.exit(now, exitedBySigkill)
			return true, time.Time{}
		}
		return false, earliest(now, e.exitAt, e.killAt)
	})
}

// exitTime returns when containers that get SIGTERM now end by themselves, or zero.
func exitTime(object *v1.Pod, now time.Time) time.Time {
	if object.Annotations[annIgnoreSigterm] == "true" {
		return time.Time{}
	}
	wait, err := time.ParseDuration(object.Annotations[annExitAfter])
	if err != nil {
		wait = 0
	}
	return now.Add(wait)
}

// count begins a grace period that is the first, is shorter than that in force, or is counted by a new kubelet.
func (e *ending) count(object *v1.Pod, kubelet int, now time.Time) {
	before := e.grace
	if e.kubelet != kubelet {
		before = 0
	}
	grace := effectiveGrace(before, object)
	if grace != before {
		e.grace, e.kubelet, e.killAt = grace, kubelet, now.Add(deadline.Seconds(max(grace, leastGrace)))
	}
}

// effectiveGrace returns the grace period of a pod that ends, which only gets shorter.
func effectiveGrace(before int64, object *v1.Pod) int64 {
	if deletion := object.DeletionGracePeriodSeconds; deletion != nil && (before == 0 || *deletion < before) {
		return max(*deletion, 1)
	}
	if spec := object.Spec.TerminationGracePeriodSeconds; before == 0 && spec != nil {
		return max(*spec, 1)
	}
	return max(before, 1)
}
