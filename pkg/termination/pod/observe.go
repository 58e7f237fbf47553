package pod

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

const (
	// DoNotDisruptAnnotation keeps a pod until L: "true", or a duration from the start of the pod.
	DoNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
	// overdue is how long after its deletion time a pod counts as stuck.
	overdue = time.Minute
	// overdueSilent is the same while the kubelet is silent: it may be restarting for an upgrade.
	overdueSilent = 5 * time.Minute
	// shortest is how soon a pod ends that is shortened now: a pod that ends as soon is not shortened again.
	shortest = time.Second + deadline.Tolerance
	// systemPriority is the lowest priority of the system's own pods.
	systemPriority = 2_000_000_000
)

// View is what a termination says of all its pods.
type View struct {
	Now time.Time
	// Times are those of the node.
	Times deadline.Times
	// Tainted is when our taint was added: younger pods that tolerate the taint come back for ever.
	Tainted time.Time
	// Silent: the kubelet has not renewed its Lease for the duration of the Lease.
	Silent bool
	// Back is when the kubelet renewed its Lease again after a silence, the zero time if it was not silent.
	Back time.Time
	// Proven: the machine is off.
	Proven bool
}

// KindOf returns what the pod is to its node.
func KindOf(p *v1.Pod) Kind {
	owner := metav1.GetControllerOf(p)
	switch {
	case p.Annotations[v1.MirrorPodAnnotationKey] != "":
		return Mirror
	case owner != nil && owner.Kind == "DaemonSet":
		return Daemon
	case p.Spec.Priority != nil && *p.Spec.Priority >= systemPriority:
		return Critical
	}
	return Ordinary
}

// GraceOf returns the grace period of the pod.
func GraceOf(p *v1.Pod) time.Duration {
	if p.Spec.TerminationGracePeriodSeconds == nil {
		return v1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return deadline.Seconds(*p.Spec.TerminationGracePeriodSeconds)
}

// Returns reports whether the owner of the pod would create it on the node again: it tolerates the taint, and is a
// DaemonSet's or younger than the taint.
func (v View) Returns(p *v1.Pod) bool {
	if !tolerates(p) {
		return false
	}
	return KindOf(p) == Daemon || !v.Tainted.IsZero() && p.CreationTimestamp.After(v.Tainted)
}

// tolerates reports whether the pod tolerates our taint, which has no value. An empty key is all taints.
func tolerates(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t v1.Toleration) bool {
		return (t.Key == termination.DisruptedTaint || t.Key == "") && t.Value == "" &&
			(t.Effect == "" || t.Effect == v1.TaintEffectNoSchedule)
	})
}

// ends returns until when the pod may run: P, and E for a DaemonSet's pod.
func (v View) ends(p *v1.Pod) time.Time {
	if KindOf(p) == Daemon {
		return v.Times.Stop
	}
	return v.Times.GraceEnds
}

// EndOf returns how far the pod has ended.
func (v View) EndOf(p *v1.Pod) End {
	finished := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	switch {
	case p.DeletionTimestamp == nil && finished:
		return Finished
	case p.DeletionTimestamp == nil:
		return Running
	case len(p.Finalizers) > 0 && (finished || containersEnded(p)):
		return ContainersEnded
	}
	return v.endOfTerminating(p)
}

func (v View) endOfTerminating(p *v1.Pod) End {
	end, readable := deletionEnds(p)
	switch {
	case readable && !v.Now.Before(v.overdueAt(p, end)):
		return Overdue
	case p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds <= 1: // nothing to shorten
		return InTime
	case readable && (v.Times.None() || !end.After(v.ends(p).Add(deadline.Tolerance)) || !end.After(v.Now.Add(shortest))):
		return InTime
	}
	return BeyondP
}

// overdueAt returns when a pod counts as stuck whose grace period ends at this time. While the kubelet is silent that
// is 5 minutes later, or P if that is earlier, but never sooner than with a kubelet that answers.
func (v View) overdueAt(p *v1.Pod, end time.Time) time.Time {
	usual := end.Add(overdue)
	if !v.Silent {
		return v.overdueOnceBack(p, usual)
	}
	silent := end.Add(overdueSilent)
	if !v.Times.None() && v.Times.GraceEnds.Before(silent) {
		silent = v.Times.GraceEnds
	}
	if silent.Before(usual) {
		return usual
	}
	return silent
}

// overdueOnceBack returns the time, or a later one for a kubelet that was away. It sends SIGTERM once it is back, and
// counts the whole grace period from there: with the usual time the machine would be turned off at once.
func (v View) overdueOnceBack(p *v1.Pod, usual time.Time) time.Time {
	if p.DeletionGracePeriodSeconds == nil {
		return usual
	}
	if back := v.Back.Add(deadline.Seconds(*p.DeletionGracePeriodSeconds) + overdue); back.After(usual) {
		return back
	}
	return usual
}

// deletionEnds returns when the grace period of a Terminating pod ends. A grace period of 292 years has an end in the
// past, year 1734: such a time cannot be used.
func deletionEnds(p *v1.Pod) (time.Time, bool) {
	end := p.DeletionTimestamp.Time
	return end, !end.Before(p.CreationTimestamp.Time)
}

// containersEnded reports whether no container runs. A sidecar is an init container that runs on, and ends last.
func containersEnded(p *v1.Pod) bool {
	goesOn := func(c v1.ContainerStatus) bool { return c.State.Terminated == nil }
	runs := func(c v1.ContainerStatus) bool { return c.State.Running != nil }
	return len(p.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(p.Status.ContainerStatuses, goesOn) &&
		!slices.ContainsFunc(p.Status.InitContainerStatuses, runs)
}

// MomentOf returns how far the termination of the node has come for the pod.
func (v View) MomentOf(p *v1.Pod) Moment {
	switch {
	case v.Proven:
		return Proven
	case v.Times.None():
		return Early
	case p.DeletionTimestamp != nil && deadline.Due(v.Times.GraceEnds.Add(-deadline.Shortening), v.Now):
		return FromShortening
	case deadline.Due(v.ForcedAt(p), v.Now):
		return FromL
	}
	return Early
}

// ForcedAt returns L of the pod, the zero time without a deadline. For a DaemonSet's pod L is P.
func (v View) ForcedAt(p *v1.Pod) time.Time {
	if KindOf(p) == Daemon {
		return v.Times.GraceEnds
	}
	return v.Times.Forced(GraceOf(p))
}

// GraceLeft returns the seconds that the pod gets if it is deleted now.
func (v View) GraceLeft(p *v1.Pod) int64 {
	times := v.Times
	if KindOf(p) == Daemon && !times.Late {
		times.GraceEnds = times.Stop
	}
	return times.Grace(GraceOf(p), v.Now)
}

// Next returns the next time at which the state of the pod may change by itself, the zero time if none does.
func (v View) Next(p *v1.Pod) time.Time {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(v.Now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	until, _ := DisruptableFrom(p)
	consider(until)
	consider(v.ForcedAt(p))
	consider(v.Times.GraceEnds.Add(-deadline.Shortening))
	if p.DeletionTimestamp != nil {
		consider(v.overdueAt(p, p.DeletionTimestamp.Time))
		consider(p.DeletionTimestamp.Add(-shortest))
	}
	return next
}

// Disruptability is what the annotation do-not-disrupt of a pod says.
type Disruptability int

const (
	// Disruptable: the pod has no such annotation, or its time has passed.
	Disruptable Disruptability = iota
	// Protected: for ever, or until a time.
	Protected
	// Unreadable: the annotation is neither "true", "false" nor a duration. It is ignored.
	Unreadable
)

// DisruptableFrom returns from when the pod may be evicted, and what its annotation says. The zero time is never, if the pod
// is protected.
func DisruptableFrom(p *v1.Pod) (time.Time, Disruptability) {
	text, exists := p.Annotations[DoNotDisruptAnnotation]
	switch {
	case !exists, text == "false":
		return time.Time{}, Disruptable
	case text == "true":
		return time.Time{}, Protected
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 0 {
		return time.Time{}, Unreadable
	}
	started := p.CreationTimestamp.Time
	if p.Status.StartTime != nil {
		started = p.Status.StartTime.Time
	}
	return started.Add(length), Protected
}

// Tiers is what of a node is still awaited before its next pods may be evicted.
type Tiers struct {
	// Ordinary, Critical: pods of the kind are awaited.
	Ordinary, Critical bool
	// Volumes of ordinary and critical pods are attached.
	Volumes bool
}

// GateOf returns what keeps the pod from being evicted, as far as pod and node say.
func (v View) GateOf(p *v1.Pod, t Tiers) Gate {
	kind := KindOf(p)
	until, disruptability := DisruptableFrom(p)
	switch {
	case disruptability == Protected && !deadline.Due(until, v.Now):
		return ByAnnotation
	case kind != Ordinary && t.Ordinary, kind == Daemon && (t.Critical || t.Volumes):
		return ByOrder
	}
	return Open
}

// Observe returns the state of the pod. Gates and answers that the pod does not show are the caller's to fill in.
func (v View) Observe(p *v1.Pod, t Tiers) State {
	return State{Kind: KindOf(p), End: v.EndOf(p), Moment: v.MomentOf(p), Gate: v.GateOf(p, t), Returns: v.Returns(p)}
}
