package nodeterminator

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// observation is what one Reconcile knows of a node.
type observation struct {
	state node.State
	// invalid is why the label, or the period of the claim, is not served.
	invalid error
	// unknown: claims cannot be read, so the period may be another one.
	unknown  bool
	now      time.Time
	deadline deadline.Deadline
	times    deadline.Times
	// began is when the first action was written, the zero time before.
	began time.Time
	// refuted: an administrator's taint proves nothing, because the kubelet renewed its Lease since.
	refuted  bool
	pods     drain.Result
	evidence evidence
	attached attachments
	stranded attachments
}

// observe reads the state of the node.
func (c *Controller) observe(ctx context.Context, n *v1.Node, t *nodeTermination) (*observation, error) {
	o := &observation{now: c.Clock.Now(), unknown: c.Claims.unreadable()} // before claims are looked at
	period, served, others, err := c.periodOf(n)
	o.invalid = err
	o.state = node.State{Provider: c.Provider, Deleting: n.DeletionTimestamp != nil, Protected: termination.Protected(n)}
	switch {
	case others:
		o.state.Owner = node.Others
	case o.unknown && !c.hasBegun(n, t): // Karpenter's claims must be known before the first action
		o.state.Owner = node.Unreadable
	case served:
		o.state.Owner = node.Ours
	}
	if t == nil {
		o.state.Begun = !c.firstAction(n).IsZero()
		return o, nil
	}
	c.observeTime(n, t, o, period, served)
	c.observeMachine(ctx, n, t, o)
	return o, c.observePods(ctx, n, t, o)
}

// periodOf returns the period of the node, by its label or by its claim of ours, whether the node names one, and whether it is
// another program's. The error says why a label or a claim is not served.
func (c *Controller) periodOf(n *v1.Node) (period deadline.Period, served, others bool, err error) {
	period, served, err = termination.PeriodOf(n)
	claim, others := c.Claims.of(n)
	if served && claim != nil {
		period, err = claim.period()
		served = err == nil
	}
	return period, served, others, err
}

// requested returns R: when the Node or its claim was deleted, whichever was first.
func (c *Controller) requested(n *v1.Node) time.Time {
	at := termination.Requested(n)
	if claim, _ := c.Claims.of(n); claim != nil {
		if claimed := claim.requested(); !claimed.IsZero() && claimed.Before(at) {
			return claimed
		}
	}
	return at
}

// hasBegun reports whether the first action of the deletion was written.
func (c *Controller) hasBegun(n *v1.Node, t *nodeTermination) bool {
	return t != nil && !t.began.IsZero() || !c.firstAction(n).IsZero()
}

// clockTolerance is how long before the request a first action may be dated: times in objects are whole seconds, and
// those of two clocks.
const clockTolerance = 10 * time.Second

// sharpening is how long before E the clock begins to be sharpened: by P, when E is planned anew, that is done.
const sharpening = time.Minute

// readPause is the time after a live read of a Lease that failed.
const readPause = time.Second

// firstAction returns when the first action of the deletion was written, the zero time before. A taint that is older
// than the request is not ours, and neither is that of Karpenter on a node of its own.
func (c *Controller) firstAction(n *v1.Node) time.Time {
	if n.DeletionTimestamp == nil {
		return time.Time{}
	}
	at := termination.FirstAction(n, time.Time{})
	if _, others := c.Claims.of(n); others && n.Annotations[termination.TimestampAnnotation] == "" {
		return time.Time{}
	}
	if at.Before(c.requested(n).Add(-clockTolerance)) {
		return time.Time{}
	}
	return at
}

// observeTime follows the deadline, which only moves earlier. A label that is changed after the request changes
// nothing.
func (c *Controller) observeTime(n *v1.Node, t *nodeTermination, o *observation, period deadline.Period, served bool) {
	if at := c.firstAction(n); t.began.IsZero() && !at.IsZero() {
		t.began = at
	}
	if t.obeyed.Requested.IsZero() {
		t.obeyed.Requested = c.requested(n)
	}
	if !t.timed && !o.unknown { // the period of a claim that is not known yet may be longer than the label's
		t.timed = true
		if served {
			t.obeyed = deadline.Earlier(t.obeyed, deadline.Of(c.requested(n), period))
		}
	}
	t.obeyed = deadline.Tighten(t.obeyed, n.Annotations[termination.TimestampAnnotation])
	if claim, _ := c.Claims.of(n); claim != nil {
		t.obeyed = deadline.Tighten(t.obeyed, claim.GetAnnotations()[termination.ClaimTimestampAnnotation])
	}
	o.deadline, o.began = t.obeyed, t.began
	o.attached = c.attachmentsOf(n.Name)
	o.state.Begun = !t.began.IsZero()
	if o.state.Begun {
		o.times = o.deadline.Times(t.began, len(o.attached) > 0)
	}
	o.state.Ended = deadline.Due(o.times.Stop, o.now)
}

// observeMachine weighs what is known of machine and kubelet. A proof is given only after a live read of the Lease.
func (c *Controller) observeMachine(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation) {
	c.followMachine(n, t)
	o.evidence = c.evidenceOf(n, t)
	v := t.proof.judge(o.evidence)
	if v.complete {
		v = c.verify(ctx, n, t, o, v)
	}
	if v.lied && o.evidence.machine.Off > 0 {
		t.machine.Reset()
		o.evidence = c.evidenceOf(n, t)
	}
	o.state.Proof, o.refuted = v.proof, t.proof.hand.refuted
	o.state.Instance = o.evidence.instanceOf()
	m := o.evidence.machine
	o.state.NoStop, o.state.Deleted, o.state.NoDelete = m.NoStop, m.Deleted, m.NoDelete
	o.state.Silent = isSilent(n, o.evidence)
	o.state.Marked = o.evidence.ours || o.evidence.others
}

// verify gives the proof if a live read shows no renewal either.
func (c *Controller) verify(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation, v verdict) verdict {
	if _, err := t.lease.Read(ctx); err != nil || c.isLeading() != nil {
		c.loop.EnqueueAfter(n.Name, readPause)
		return v
	}
	o.evidence = c.evidenceOf(n, t)
	if v = t.proof.judge(o.evidence); v.complete {
		t.proof.given, v.proof = true, node.Given
	}
	return v
}

func (c *Controller) evidenceOf(n *v1.Node, t *nodeTermination) evidence {
	ours, others := termination.OutOfService(n)
	e := evidence{lease: t.lease.View(), ours: ours, others: others, shared: c.caches.isShared(n)}
	if t.machine != nil {
		e.machine = t.machine.View()
	}
	return e
}

// isSilent reports whether the kubelet renews its Lease no more: as this process has watched it, or as the node
// lifecycle controller says, which has watched it for longer. A renewal that was seen counts for more than a
// condition.
func isSilent(n *v1.Node, e evidence) bool {
	unknown := slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionUnknown
	})
	return e.lease.Silent() || unknown && e.lease.Renewals == 0
}

// silentSince returns since when the kubelet renews its Lease no more, if it is silent: as this process has watched it, or
// as the node lifecycle controller says.
func silentSince(n *v1.Node, e evidence, now time.Time) time.Time {
	since := now.Add(-e.lease.Unchanged)
	for _, c := range n.Status.Conditions {
		unknown := c.Type == v1.NodeReady && c.Status == v1.ConditionUnknown && e.lease.Renewals == 0
		if at := c.LastTransitionTime.Time; unknown && at.Before(since) {
			since = at
		}
	}
	return since
}

// backSince returns when the kubelet came back after a silence, the zero time if it was not away: as this process has
// watched it, or since when the Node is ready, which an earlier leader may have waited for.
func backSince(n *v1.Node, e evidence, now time.Time) time.Time {
	var back time.Time
	if e.lease.Returned > 0 {
		back = now.Add(-e.lease.Returned)
	}
	if at := termination.ReadySince(n, now); at.After(back) {
		return at
	}
	return back
}

// observePods has the pods of the node ended as far as the node is ours, and reads what is left.
func (c *Controller) observePods(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation) error {
	if !t.restored() {
		o.state.Pods, o.state.Volumes = node.Awaited, o.attached.volumes(nil, false)
		return nil
	}
	view := pod.View{Now: o.now, Times: o.times, Tainted: o.began, Silent: o.state.Silent,
		Back: backSince(n, o.evidence, o.now), Proven: o.state.Proof == node.Given}
	volumes := t.beforeDaemons
	drains := o.state.Protected && o.state.Begun && o.state.Deleting &&
		o.state.Proof != node.Revoked
	result, err := c.drain(ctx, n, t, drain.View{View: view, Deadline: o.deadline, Begun: o.began,
		SilentSince: silentSince(n, o.evidence, o.now), Volumes: volumes || !t.synced && len(o.attached) > 0, HasVolume: o.attached.uses, Drain: drains,
		Holds: c.holds(n, t, o)})
	if err != nil {
		return err
	}
	o.pods, t.synced = result, result.Synced
	if !result.Synced {
		o.state.Pods, o.state.Volumes = node.Awaited, o.attached.volumes(nil, view.Proven)
		return nil
	}
	o.stranded = o.attached.stranded(view, result.Awaited, result.Unawaited)
	before := o.attached.beforeDaemons(o.stranded, slices.Concat(result.Awaited, result.Unawaited))
	if before != t.beforeDaemons {
		t.beforeDaemons = before
		c.loop.Enqueue(n.Name)
	}
	o.state.Pods, o.state.Settled = result.Pods, result.Settled
	o.state.Volumes = o.attached.volumes(o.stranded, view.Proven)
	return nil
}

// drain ends the pods of the node. Before it removes pods of a machine that is off, and before it removes pods that came
// later, it reads the Node live, by UID, and the Lease: a pod that runs would write beside its replacement.
func (c *Controller) drain(ctx context.Context, n *v1.Node, t *nodeTermination,
	view drain.View) (drain.Result, error) {
	removes := view.Drain && view.Proven
	view.Drain = view.Drain && (!removes || t.verified)
	result, err := t.pods.Reconcile(ctx, view)
	left := err == nil && removes && result.Synced && result.Pods != node.NoPods && result.Pods != node.Kept
	if left && !t.verified {
		if _, err := c.live(ctx, n); err != nil {
			return result, err
		}
		if err := t.stillSilent(ctx); err != nil {
			return result, err
		}
		view.Drain = true
		result, err = t.pods.Reconcile(ctx, view)
	}
	t.verified = left && err == nil
	return result, err
}

// holds returns a function that reports whether neither the Lease nor the provider has spoken against the proof since.
func (c *Controller) holds(n *v1.Node, t *nodeTermination, o *observation) func() bool {
	renewals := o.evidence.lease.Renewals
	return func() bool {
		e := c.evidenceOf(n, t)
		return e.lease.Renewals == renewals && e.off()
	}
}

// next returns when the state of the node changes by time alone.
func (o *observation) next() time.Duration {
	var wait time.Duration
	consider := func(after time.Duration) {
		if after > 0 && (wait == 0 || after < wait) {
			wait = after
		}
	}
	at := func(when time.Time) {
		if !when.IsZero() {
			consider(when.Sub(o.now))
		}
	}
	at(o.pods.Next)
	at(o.times.Stop)
	at(o.times.Stop.Add(-sharpening))
	at(o.times.GraceEnds)
	if l := o.evidence.lease; l.Synced {
		consider(l.Duration - l.Unchanged)
		if o.evidence.off() {
			consider(l.Proving() - l.Unchanged)
		}
	}
	return wait
}
