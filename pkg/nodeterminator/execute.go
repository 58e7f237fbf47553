package nodeterminator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

const (
	// writeTimeout is how long a write may take: a webhook may answer late.
	writeTimeout = 30 * time.Second
	// writePause is the time after a write in the background that failed, undonePause after one that succeeded: somebody
	// else may take it back each time.
	writePause, undonePause = 5 * time.Second, time.Second
)

// errNotAsObserved: the Node that a decision rests on has changed, or is another one.
var errNotAsObserved = fmt.Errorf("%w: the Node is not as it was observed", controller.ErrStaleCache)

// execute carries out one action, and reports whether it wrote to the Node.
func (c *Controller) execute(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation,
	d node.Decision) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	c.executeBeside(n, t, o, d)
	switch d.Action {
	case node.Protect:
		return true, c.protect(ctx, n)
	case node.Taint:
		return c.begun(ctx, n, t, o)
	case node.Stop:
		return false, c.stop(ctx, n, t, o)
	case node.MarkOutOfService:
		return true, c.markOutOfService(ctx, n, t)
	case node.Unmark:
		stopped, unmarked := c.stopMarked(ctx, n, t, o), c.unmark(ctx, n, t)
		return true, cmp.Or(stopped, unmarked) // a missing slot must not hide that Stop is to be tried again
	case node.DeleteInstance:
		return false, c.deleteInstance(ctx, n, t)
	case node.Release, node.HandOver:
		return false, c.release(ctx, n, t)
	case node.Abandon:
		if t != nil {
			t.report.Phase = termination.PhaseAbandoned
			c.conclude(t)
		}
	case node.Wait:
		if t == nil {
			return false, c.noteSeen(ctx, n)
		}
	case node.Confirm, node.Clean: // pods, provider, Lease and time enqueue the node again
	}
	return false, nil
}

// limit returns how long a write before E may take: Stop must not wait for a webhook.
func (o *observation) limit() time.Duration {
	end := o.times.Stop
	if o.times.None() {
		end = o.deadline.End // of a termination that has not begun
	}
	left := end.Sub(o.now)
	if end.IsZero() || left <= 0 {
		return writeTimeout
	}
	return min(writeTimeout, left)
}

// executeBeside plans the next look at the node, and starts what no decision waits for.
func (c *Controller) executeBeside(n *v1.Node, t *nodeTermination, o *observation, d node.Decision) {
	if t == nil {
		c.probe(n, o)
		return
	}
	if wait := o.next(); wait > 0 {
		c.loop.EnqueueAfter(n.Name, wait)
	}
	if !o.state.Begun || !o.state.Protected || d.Action == node.Abandon {
		return
	}
	if left := o.times.Stop.Sub(o.now); left > 0 && left <= sharpening {
		go c.Clock.Sharpen(c.ctx, func(ctx context.Context) error {
			_, err := t.lease.Read(ctx)
			return err
		})
	}
	if change := c.restoration(n, t, o); !change.Empty() {
		c.background(t, &t.busy, func(ctx context.Context) error { return c.send(ctx, n, t, change) })
	} else if write := c.describeClaim(n, o); write != nil {
		c.background(t, &t.claimBusy, write)
	}
}

// live reads the Node. It returns an error if the UID, the providerID or our finalizer is not as observed, or if the Node
// is being deleted now and was not, or the other way round.
func (c *Controller) live(ctx context.Context, n *v1.Node) (*v1.Node, error) {
	if err := c.isLeading(); err != nil {
		return nil, err
	}
	live, exists, err := answer.Get(ctx, n.Name, c.Client.CoreV1().Nodes().Get)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read node %s: %w", n.Name, err)
	case !exists, live.UID != n.UID, (live.DeletionTimestamp != nil) != (n.DeletionTimestamp != nil),
		!termination.Protected(live), live.Spec.ProviderID != n.Spec.ProviderID:
		return nil, errNotAsObserved
	}
	return live, nil
}

// patch changes the Node. A worker waits for the answer, so there must be a slot.
func (c *Controller) patch(ctx context.Context, n *v1.Node, t *nodeTermination, change *patch.Patch) error {
	of := c.ending
	if t == nil {
		of = c.living
	}
	return of.run(ctx, n.Name, func(ctx context.Context) error { return c.send(ctx, n, t, change) })
}

// send sends a patch.
func (c *Controller) send(ctx context.Context, n *v1.Node, t *nodeTermination, change *patch.Patch) error {
	body, err := change.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch of node %s: %w", n.Name, err)
	}
	nodes := c.Client.CoreV1().Nodes()
	now, err := nodes.Patch(ctx, n.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch node %s: %w", n.Name, controller.CheckRefusal(ctx, err, "node", n, nodes.Get))
	}
	if t != nil {
		t.wrote(now)
	}
	return nil
}

// protect adds our finalizer.
func (c *Controller) protect(ctx context.Context, n *v1.Node) error {
	return c.patch(ctx, n, nil, patch.ForVersion(n).Set("/metadata/finalizers",
		append(slices.Clone(n.Finalizers), termination.Finalizer)))
}

// begun writes the first action. If a webhook refuses it, the termination goes on without the taint, which is written
// in the background: no webhook moves a deadline.
func (c *Controller) begun(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, firstActionLimit(o))
	defer cancel()
	change := c.firstActionOf(n, o)
	err := c.beginning.run(ctx, n.Name, func(ctx context.Context) error { return c.send(ctx, n, t, change) })
	if errors.Is(err, errNoSlot) { // a first action takes two seconds at most
		return false, err
	}
	if err == nil || !patch.IsStale(err) && !errors.Is(err, controller.ErrGone) {
		t.began = c.Clock.Now().Truncate(time.Second)
		c.tell(n, expiring(o.deadline))
	}
	if err != nil && !t.began.IsZero() {
		c.loop.Enqueue(n.Name)
	}
	return err == nil, err
}

// firstActionLimit returns how long the first action may take until pods are evicted without it: a webhook that hangs
// must not eat the time of a drain.
func firstActionLimit(o *observation) time.Duration {
	const most, least = 2 * time.Second, 200 * time.Millisecond
	if o.deadline.None() {
		return most
	}
	return max(least, min(most, o.deadline.End.Sub(o.now)/4))
}

// firstActionOf returns the patch of the first action.
func (c *Controller) firstActionOf(n *v1.Node, o *observation) *patch.Patch {
	annotations := map[string]string{termination.ScaleDownDisabled: "true"}
	if text := o.deadline.Annotation(); text != "" {
		annotations[termination.TimestampAnnotation] = text
	}
	return patch.ForVersion(n).TestDeletion(n).Annotate(n, annotations).
		Set("/metadata/labels/"+patch.Escape(v1.LabelNodeExcludeBalancers), "").
		Set("/spec/taints", tainted(n, termination.DisruptedTaint, "", v1.TaintEffectNoSchedule, o.now))
}

// tainted returns the taints of the node with this one.
func tainted(n *v1.Node, key, value string, effect v1.TaintEffect, at time.Time) []v1.Taint {
	return append(untainted(n, key, effect), v1.Taint{Key: key, Value: value, Effect: effect,
		TimeAdded: &metav1.Time{Time: at.UTC().Truncate(time.Second)}})
}

func untainted(n *v1.Node, key string, effect v1.TaintEffect) []v1.Taint {
	return slices.DeleteFunc(slices.Clone(n.Spec.Taints),
		func(taint v1.Taint) bool { return taint.Key == key && taint.Effect == effect })
}

// restoration returns the patch that restores what users or other programs changed of the first action: the deadline
// never moves later. It also notes a machine that was seen running.
func (c *Controller) restoration(n *v1.Node, t *nodeTermination, o *observation) *patch.Patch {
	annotations := map[string]string{}
	written := n.Annotations[termination.TimestampAnnotation]
	if text := o.deadline.Annotation(); text != "" && !isTime(written, o.deadline.End) {
		annotations[termination.TimestampAnnotation] = text
	}
	if t.machine != nil && !wasSeen(n) && isRunning(o.evidence.machine) && !o.evidence.shared {
		annotations[termination.InstanceAnnotation] = n.Spec.ProviderID
	}
	if n.Annotations[termination.ScaleDownDisabled] != "true" {
		annotations[termination.ScaleDownDisabled] = "true"
	}
	change := patch.ForVersion(n).TestDeletion(n)
	if _, excluded := n.Labels[v1.LabelNodeExcludeBalancers]; !excluded && len(n.Labels) > 0 {
		change.Set("/metadata/labels/"+patch.Escape(v1.LabelNodeExcludeBalancers), "")
	}
	if c.firstAction(n).IsZero() {
		change.Set("/spec/taints", tainted(n, termination.DisruptedTaint, "", v1.TaintEffectNoSchedule, t.began))
	}
	if len(annotations) > 0 {
		change.Annotate(n, annotations)
	}
	return change
}

func isTime(text string, at time.Time) bool {
	written, err := time.Parse(time.RFC3339, text)
	return err == nil && written.Equal(at.Truncate(time.Second))
}

// stop has the machine stopped. Nothing but the live read of the Node precedes it.
func (c *Controller) stop(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation) error {
	if !t.machine.MayStop() {
		return nil
	}
	if _, err := c.live(ctx, n); err != nil {
		return err
	}
	if t.machine.Stop() && !t.stopped {
		t.stopped = true
		if o.state.Ended {
			c.metrics.stopDelay.Observe(c.Clock.Now().Sub(o.times.Stop).Seconds())
		}
	}
	return nil
}

// stopMarked has a machine stopped that runs although its Node has our taint, if it were stopped without the taint. A
// webhook that keeps the taint there would otherwise keep the machine running, while its disks are attached elsewhere.
func (c *Controller) stopMarked(ctx context.Context, n *v1.Node, t *nodeTermination, o *observation) error {
	unmarked := o.state
	unmarked.Marked = false
	if node.Decide(unmarked).Action != node.Stop {
		return nil
	}
	return c.stop(ctx, n, t, o)
}

// deleteInstance has the machine deleted. No volume is attached to it.
func (c *Controller) deleteInstance(ctx context.Context, n *v1.Node, t *nodeTermination) error {
	if !t.machine.MayDelete() {
		return nil
	}
	live, err := c.live(ctx, n)
	if err != nil {
		return err
	}
	if t.proof.given {
		if err := t.stillSilent(ctx); err != nil {
			return err
		}
	}
	if err := c.noneAttached(ctx, live); err != nil {
		if errors.Is(err, errAttached) {
			c.tellAttached(n, t, err)
		}
		return err
	}
	t.attachedSince = time.Time{}
	t.machine.Delete()
	return nil
}

// noneAttached returns an error if a volume is attached to the node. A cache may be old, and some providers delete with a
// machine the disks that are attached to it: those would be lost.
func (c *Controller) noneAttached(ctx context.Context, live *v1.Node) error {
	if attached := live.Status.VolumesAttached; len(attached) > 0 {
		return fmt.Errorf("%w: status.volumesAttached of the Node names %s", errAttached, attached[0].Name)
	}
	nodes, err := c.attached.read(ctx, c.Client)
	if err == nil && nodes.Has(live.Name) {
		err = fmt.Errorf("%w: a VolumeAttachment names the node", errAttached)
	}
	return err
}

// errAttached: the caches show no attachment, and a live read shows one.
var errAttached = fmt.Errorf("%w: a volume is attached to it", errNotAsObserved)

// tellAttached sends an event about why the machine is not deleted, if it lasts. The caches may be a moment old after each detachment.
func (c *Controller) tellAttached(n *v1.Node, t *nodeTermination, err error) {
	now := c.Clock.Now()
	if t.attachedSince.IsZero() {
		t.attachedSince = now
	}
	if now.Sub(t.attachedSince) >= patience {
		c.reporter.ReportFailure(n, controller.WarningEvent(string(node.DisksAttached), "The machine is not deleted: "+
			strings.TrimPrefix(err.Error(), errNotAsObserved.Error()+": ")))
	}
}

// markOutOfService has the volumes of a machine that is off detached.
func (c *Controller) markOutOfService(ctx context.Context, n *v1.Node, t *nodeTermination) error {
	live, err := c.live(ctx, n)
	if err != nil {
		return err
	}
	if err := t.stillSilent(ctx); err != nil {
		return err
	}
	return c.patch(ctx, live, t, patch.ForVersion(live).TestDeletion(live).Set("/spec/taints",
		tainted(live, v1.TaintNodeOutOfService, termination.OutOfServiceValue, v1.TaintEffectNoExecute, c.Clock.Now())))
}

// stillSilent returns an error if a live read of the Lease, or the watch before it, shows a renewal since the proof.
func (t *nodeTermination) stillSilent(ctx context.Context) error {
	view, err := t.lease.Read(ctx)
	if err == nil && view.Renewals != t.proof.renewals {
		err = errNotAsObserved
	}
	return err
}

// unmark takes our taint out-of-service back: the machine runs.
func (c *Controller) unmark(ctx context.Context, n *v1.Node, t *nodeTermination) error {
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(taint v1.Taint) bool {
		return taint.Key == v1.TaintNodeOutOfService && taint.Value == termination.OutOfServiceValue
	})
	return c.patch(ctx, n, t, patch.ForVersion(n).TestDeletion(n).Set("/spec/taints", taints))
}

// release removes our finalizer, from the Node as it is live: a new Node of the same name is not touched.
func (c *Controller) release(ctx context.Context, n *v1.Node, t *nodeTermination) error {
	live, err := c.live(ctx, n)
	if err != nil {
		return err
	}
	if t != nil && t.proof.given { // without the Node, all its pods and attachments are freed
		if err := t.stillSilent(ctx); err != nil {
			return err
		}
	}
	change := patch.For(live).TestDeletion(live)
	if live.DeletionTimestamp == nil {
		change = patch.ForVersion(live)
		if _, noted := live.Annotations[termination.InstanceAnnotation]; noted {
			change.Remove("/metadata/annotations/" + patch.Escape(termination.InstanceAnnotation))
		}
	}
	at := fmt.Sprintf("/metadata/finalizers/%d", slices.Index(live.Finalizers, termination.Finalizer))
	if err := c.patch(ctx, live, t, change.Test(at, termination.Finalizer).Remove(at)); err != nil {
		return err
	}
	if t != nil {
		t.released, t.report.Phase = true, termination.PhaseEnded
		t.stop() // finalizers of others may keep the Node
		t.count(t.pods.Last())
		c.Drainer.Forget(t.name)
		t.summarize()
		c.offer(t)
	}
	return nil
}
