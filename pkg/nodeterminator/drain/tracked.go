package drain

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// credit is how a pod was ended by us.
type credit int

const (
	// notOurs: no request of ours was accepted.
	notOurs credit = iota
	// byEviction, byDeletion: with the whole grace period.
	byEviction
	byDeletion
	// cutShort: with less.
	cutShort
	// byRemoval: after the proof.
	byRemoval
)

// String returns the name of the value.
func (c credit) String() string {
	return enum.Name(c, "notOurs", "byEviction", "byDeletion", "cutShort", "byRemoval")
}

// tracked is what is known of one pod of a node.
type tracked struct {
	node *Node
	// pod is not changed; each event of the watch brings another.
	pod *v1.Pod
	// budgets are those of the generation matched.
	budgets []string
	matched int

	// cancel ends the eviction in flight.
	cancel func()
	// evictionText is what refused the last eviction; blockedBy is the budget that the API server named.
	evictionText, blockedBy string
	// heard is the last answer to an eviction.
	heard kind
	// doubted is the last request that failed and may have been carried out, nil if there is none.
	doubted *outcome

	// forcing: a forced request waits or is in flight.
	forcing bool
	// granted is the grace period of the deletion, as the watch first showed it.
	granted int64
	// endsBy is P of the deletion by us.
	endsBy time.Time
	// sent is the last action that was accepted, and accepted is when.
	sent     pod.Action
	accepted time.Time
	// failures of forced requests, the time of the next one, what refused the last one, and its action.
	failures int
	retry    time.Time
	refusal  string
	failed   pod.Action

	credit credit
	// finished: the containers ended for good before anybody deleted the pod.
	finished bool
	// gone: the pod is not there any more. seenEnd: the watch showed its end.
	gone, seenEnd bool
	// told: the event about an annotation that is ignored was sent.
	told bool
}

// shown reports whether the watch showed the effect of a request before its answer came. Else the watch has the node
// reconciled.
func (r *tracked) shown() bool { return r.gone || r.pod.DeletionTimestamp != nil }

// doubt remembers an eviction that may have been carried out although it failed.
func (r *tracked) doubt(answer result, out outcome) {
	switch {
	case answer.doubtful:
		r.doubted = &out
	case answer.kind == blocked, answer.kind == refused:
		r.doubted = nil
	}
}

// shows reports whether the pod is as the request leaves it. Others may have deleted the pod with the same grace
// period, but not with the condition.
func (r *tracked) shows(out outcome) bool {
	switch {
	case out.action == pod.Remove && r.gone:
		return true
	case r.pod.DeletionTimestamp == nil:
		return false
	case out.action == pod.Remove, out.action == pod.Shorten:
		return granted(r.pod) <= out.seconds
	}
	same := r.granted == out.seconds || r.gone && r.granted == 0 // the watch showed nothing but the end
	return same && (disruptedBy(r.pod) == disruptionReason || disruptedBy(r.pod) == byEvictionAPI)
}

// visible is how long the effect of an accepted request may take to show in the watch. After that the request is sent
// again.
const visible = 30 * time.Second

// pending reports whether the action must not be sent because an accepted request has an effect that the watch does not
// show yet.
func (r *tracked) pending(action pod.Action, now time.Time) bool {
	recent := now.Before(r.accepted.Add(visible))
	switch {
	case r.accepted.IsZero():
		return false
	case action == pod.Shorten && r.sent == pod.Shorten: // once, whatever comes of it
		return true
	case action == pod.Remove: // whatever came of a request before the proof, the machine is off
		return r.sent == pod.Remove && recent
	case r.sent == pod.Evict, r.sent == pod.Delete:
		return r.pod.DeletionTimestamp == nil && recent
	}
	return recent
}

// forgive forgets what refused other actions: a refusal from before the proof must not delay a removal.
func (r *tracked) forgive(action pod.Action) {
	if action == pod.Remove && r.failed != pod.Remove {
		r.failures, r.retry, r.refusal = 0, time.Time{}, ""
	}
}

// graceOf returns the grace period that the pod asks for, in seconds.
func graceOf(p *v1.Pod) int64 {
	if p.Spec.TerminationGracePeriodSeconds == nil {
		return v1.DefaultTerminationGracePeriodSeconds
	}
	return *p.Spec.TerminationGracePeriodSeconds
}

// granted returns the grace period of the deletion, in seconds: that of the pod, if it is not being deleted.
func granted(p *v1.Pod) int64 {
	if p.DeletionGracePeriodSeconds == nil {
		return graceOf(p)
	}
	return *p.DeletionGracePeriodSeconds
}

// requestedAt returns when a Terminating pod was deleted. The difference holds even for a grace period of 292 years,
// whose end wraps around.
func requestedAt(p *v1.Pod) time.Time {
	return p.DeletionTimestamp.Add(-time.Second * time.Duration(granted(p)))
}

// ownerOf returns kind and name of the controller of the pod.
func ownerOf(p *v1.Pod) string {
	if owner := metav1.GetControllerOf(p); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return ""
}

// nameOf returns namespace/name.
func nameOf(p *v1.Pod) string { return p.Namespace + "/" + p.Name }
