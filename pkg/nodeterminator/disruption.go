package nodeterminator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/disruption"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

const (
	// disruptionBlocked and disruptionTerminating are Karpenter's reasons of the events about a claim that has drifted or
	// expired: what keeps its node, and that its node is deleted.
	disruptionBlocked     = "DisruptionBlocked"
	disruptionTerminating = "DisruptionTerminating"
	// expireAfterInvalid is the reason of the event about an expireAfter that cannot be read.
	expireAfterInvalid = "ExpireAfterInvalid"
	// deletionTimeout is how long after a lost answer the API server may still carry a DELETE out: its --request-timeout.
	deletionTimeout = time.Minute
)

// errOutcomeUnknown: the API server may have deleted the claim, or may still do so.
var errOutcomeUnknown = errors.New("outcome unknown")

// disruptions are the nodes that are deleted because their claims have drifted or expired, or wait for that.
type disruptions struct {
	mu sync.Mutex
	// begun are the claims, by node, whose deletion the cache does not show yet.
	begun map[string]types.UID
	// waits has what each node waits for.
	waits map[string]disruption.Reason
	// looks are the nodes whose pods are watched for that. While pods are being listed, the node keeps its place until the
	// time, the zero time afterwards.
	looks map[string]time.Time
	wakes
}

func newDisruptions() *disruptions {
	return &disruptions{begun: map[string]types.UID{}, waits: map[string]disruption.Reason{}, looks: map[string]time.Time{},
		wakes: newWakes()}
}

// note records what the node waits for, and whether its pods are watched for that. It returns whether they were, and are
// no more.
func (d *disruptions) note(node string, what disruption.Decision, seen drain.Sight) (ends bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, looked := d.looks[node]
	looks := what.Action == disruption.Look
	delete(d.waits, node)
	switch {
	case !looks:
		delete(d.looks, node)
	case !seen.Pending:
		d.looks[node] = time.Time{}
	case !looked:
		d.looks[node] = time.Now().Add(listTimeout)
	}
	switch what.Reason {
	case disruption.DoNotDisrupt, disruption.OthersTerminate, disruption.PodsUnknown, disruption.PodsBlock:
		d.waits[node] = what.Reason
	default:
	}
	return looked && !looks
}

// isBegun reports whether this process deleted the claim, which the cache may not show yet.
func (d *disruptions) isBegun(one *claim) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	uid, begun := d.begun[one.GetName()]
	return begun && uid == one.GetUID()
}

// isLookedAt reports whether the pods of the node are watched.
func (d *disruptions) isLookedAt(node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, looked := d.looks[node]
	return looked
}

// counts returns how many nodes wait for what.
func (d *disruptions) counts() map[disruption.Reason]int {
	counts := map[disruption.Reason]int{disruption.DoNotDisrupt: 0, disruption.OthersTerminate: 0,
		disruption.PodsUnknown: 0, disruption.PodsBlock: 0}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, reason := range d.waits {
		counts[reason]++
	}
	return counts
}

// disruptionWrite returns the write that deletes the claim of a node because the claim has drifted or expired, nil for none.
func (c *Controller) disruptionWrite(n *v1.Node, one *claim) write {
	s := c.observeDisruption(n, one)
	var seen drain.Sight
	looks := c.disruptions.isLookedAt(n.Name)
	if !looks && disruption.Decide(s).Action == disruption.Look { // a watch costs a request: not of all nodes at once
		s.Room = c.takePlace(n.Name)
		looks = s.Room
	}
	if looks {
		seen = c.look(n)
		s.Pods = podsSeen(seen)
	}
	d := disruption.Decide(s)
	c.endLook(n.Name, c.disruptions.note(n.Name, d, seen))
	if d.Reason == disruption.OthersTerminate && c.hasRoom(n.Name) { // the other node ended before this one waited
		c.loop.Enqueue(n.Name)
	}
	c.tellDisruption(one, s.Cause, d, seen)
	if d.Action != disruption.Delete {
		return nil
	}
	return func(ctx context.Context) error { return c.disrupt(ctx, n, one, s.Cause) }
}

// observeDisruption reads whether the claim has a cause, and what keeps its node, but for the pods.
func (c *Controller) observeDisruption(n *v1.Node, one *claim) disruption.State {
	now := c.Clock.Now()
	cause, expires, err := one.cause(now)
	if err != nil {
		c.reporter.Report(one, controller.WarningEvent(expireAfterInvalid, "Ignored: "+err.Error()))
	}
	if !expires.IsZero() {
		c.loop.EnqueueAfter(n.Name, expires.Sub(now))
	}
	_, served, others, _ := c.periodOf(n) // what is not served has an event of its own
	period, _ := one.period()
	_, limited := period.Length()
	s := disruption.State{Cause: cause, Served: served && !others && termination.Protected(n) && termination.Protected(one),
		Deleted: n.DeletionTimestamp != nil || one.deleting() || c.disruptions.isBegun(one),
		Kept:    isKept(n) || isKept(one), Limited: limited}
	if cause != disruption.NoCause {
		s.Room = c.hasRoom(n.Name)
	}
	return s
}

// isKept reports whether the object says that its node must not be replaced.
func isKept(object metav1.Object) bool {
	return object.GetAnnotations()[pod.DoNotDisruptAnnotation] == "true"
}

// cause returns why the node of the claim is to be replaced, or when the claim expires.
func (c *claim) cause(now time.Time) (cause disruption.Cause, expires time.Time, err error) {
	expires, err = termination.Expires(c.Unstructured)
	switch {
	case termination.Drifted(c.Unstructured):
		return disruption.Drifted, time.Time{}, err
	case err != nil, expires.IsZero():
		return disruption.NoCause, time.Time{}, err
	case !now.Before(expires):
		return disruption.Expired, time.Time{}, nil
	}
	return disruption.NoCause, expires, nil
}

// look returns what the pods of the node say, and watches them from now on.
func (c *Controller) look(n *v1.Node) drain.Sight {
	now := c.Clock.Now()
	seen := c.Drainer.Pods(n.Name, n.UID).Look(now)
	if !seen.Next.IsZero() {
		c.loop.EnqueueAfter(n.Name, seen.Next.Sub(now))
	}
	if seen.Pending {
		c.loop.EnqueueAfter(n.Name, listTimeout)
	}
	return seen
}

func podsSeen(seen drain.Sight) disruption.Pods {
	switch {
	case !seen.Known:
		return disruption.Unknown
	case len(seen.Blocking) > 0:
		return disruption.Blocked
	}
	return disruption.Free
}

// endDisruption forgets what a node waits for that has no claim of ours, is gone, or is being deleted. The drain of a node
// that is being deleted goes on with the watch.
func (c *Controller) endDisruption(name string) {
	c.endLook(name, c.disruptions.note(name, disruption.Decision{}, drain.Sight{}))
}

// endLook ends the watch of the pods of a node, unless the node is being terminated.
func (c *Controller) endLook(name string, ends bool) {
	if ends && c.termination(name) == nil {
		c.Drainer.Forget(name)
	}
}

// hasRoom reports whether so few other nodes are being terminated, or were woken for that, that this one may be.
func (c *Controller) hasRoom(name string) bool {
	c.disruptions.mu.Lock()
	defer c.disruptions.mu.Unlock()
	return c.freeLocked(name) > 0
}

// terminatingBut returns the nodes of ours that are being terminated, or are about to be, but for this one, sorted.
func (c *Controller) terminatingBut(name string) []string {
	c.disruptions.mu.Lock()
	defer c.disruptions.mu.Unlock()
	return c.terminatingLocked(name)
}

// terminatingLocked is terminatingBut with the mutex of the disruptions.
func (c *Controller) terminatingLocked(name string) []string {
	found := map[string]bool{}
	for _, n := range byIndex[*v1.Node](c.caches.Nodes, byTerminating, hasIt) {
		found[n.Name] = true
	}
	for _, one := range c.Claims.terminating() {
		if n := c.caches.node(one.GetName()); n != nil && termination.Protected(n) {
			found[one.GetName()] = true
		}
	}
	for node, uid := range c.disruptions.begun {
		if one := c.Claims.named(node); one == nil || one.GetUID() != uid || one.deleting() { // the cache shows the end
			delete(c.disruptions.begun, node)
			continue
		}
		found[node] = true
	}
	delete(found, name)
	return slices.Sorted(maps.Keys(found))
}

// isTerminating reports whether the claim is ours and keeps its node while both end.
func (c *claim) isTerminating() bool { return c.isOurs() && c.deleting() && termination.Protected(c) }

// reserve takes one of the places for nodes that are being terminated.
func (c *Controller) reserve(one *claim) bool {
	d := c.disruptions
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.begun[one.GetName()] != "": // deleted already
		return false
	case c.freeLocked(one.GetName()) <= 0:
		d.waits[one.GetName()] = disruption.OthersTerminate
		return false
	}
	d.begun[one.GetName()] = one.GetUID()
	return true
}

// disrupt deletes the claim of a node, and with it the node, if there is a place.
func (c *Controller) disrupt(ctx context.Context, n *v1.Node, one *claim, cause disruption.Cause) error {
	if !c.reserve(one) {
		return nil // whoever has the place wakes this node
	}
	err := c.deleteDisrupted(ctx, n, one)
	switch {
	case errors.Is(err, errOutcomeUnknown): // in the place of this node, a second one would go beside it
		time.AfterFunc(deletionTimeout, func() {
			c.giveBack(one)
			c.loop.Enqueue(n.Name)
		})
		return c.reporter.ReportRefusal(one, "Deleting the NodeClaim", err)
	case err != nil:
		c.pauseDisruptions()
		c.giveBack(one)
		return c.reporter.ReportRefusal(one, "Deleting the NodeClaim", err)
	}
	c.disruptions.failed.Forget("")
	c.reporter.Report(one, controller.NormalEvent(disruptionTerminating, "Deleting the claim and its node: "+
		strings.ToLower(cause.String())))
	return nil
}

// deleteDisrupted deletes the claim as it was observed, after live reads: the caches of a new leader may be older than what
// the former one deleted.
func (c *Controller) deleteDisrupted(ctx context.Context, n *v1.Node, one *claim) error {
	live, err := c.live(ctx, n)
	if err != nil {
		return err
	}
	if _, served, _ := termination.PeriodOf(live); !served || isKept(live) {
		return errNotAsObserved
	}
	others, err := c.Claims.liveTerminating(ctx)
	if err != nil {
		return err
	}
	if others.Delete(n.Name); others.Len() >= c.MaxDisrupted {
		return fmt.Errorf("%w: %s are being terminated", errNotAsObserved, strings.Join(others.UnsortedList(), ", "))
	}
	if err := c.isLeading(); err != nil { // the lists took their time
		return err
	}
	options, version := onlyWith(one.GetUID()), one.GetResourceVersion()
	options.Preconditions.ResourceVersion = &version
	err = controller.CheckRefusal(ctx, c.Claims.client.Delete(ctx, one.GetName(), options), "NodeClaim", one.Unstructured,
		c.Claims.get)
	switch {
	case patch.IsStale(err), errors.Is(err, controller.ErrGone):
		return errNotAsObserved
	case err != nil && !answer.IsDefinite(err):
		return fmt.Errorf("delete NodeClaim %s, %w: %w", one.GetName(), errOutcomeUnknown, err)
	case err != nil:
		return fmt.Errorf("delete NodeClaim %s: %w", one.GetName(), err)
	}
	return nil
}

// giveBack frees the place of a node whose claim was not deleted.
func (c *Controller) giveBack(one *claim) {
	d := c.disruptions
	d.mu.Lock()
	if d.begun[one.GetName()] == one.GetUID() {
		delete(d.begun, one.GetName())
	}
	d.mu.Unlock()
	c.enqueueWaiting()
}

// tellDisruption tells the user what a node waits for that is to be replaced.
func (c *Controller) tellDisruption(one *claim, cause disruption.Cause, d disruption.Decision, seen drain.Sight) {
	text := ""
	switch d.Reason {
	case disruption.DoNotDisrupt:
		text = "the Node or the claim has the annotation " + pod.DoNotDisruptAnnotation
	case disruption.OthersTerminate:
		text = fmt.Sprintf("%s being terminated, and --max-disrupted is %d",
			areOf(c.terminatingBut(one.GetName())), c.MaxDisrupted)
		if c.disruptions.isPaused() {
			text = "the deletion of a NodeClaim failed, and is tried again with backoff"
		}
	case disruption.PodsUnknown:
		text = "it has no terminationGracePeriod, and its pods or their budgets cannot be read"
	case disruption.PodsBlock:
		left := seen.Blocking[0]
		text = fmt.Sprintf("it has no terminationGracePeriod, and pod %s cannot be evicted: %s", left.Pod,
			strings.TrimSpace(left.Reason+" "+left.Holder))
		if more := len(seen.Blocking) - 1; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
	default:
		c.reporter.Withdraw(one.GetUID())
		return
	}
	c.reporter.ReportAfter(one, controller.NormalEvent(disruptionBlocked, fmt.Sprintf("The claim is %s, and its node waits: %s",
		strings.ToLower(cause.String()), text)), patience)
}

// areOf names nodes, and says "is" or "are".
func areOf(nodes []string) string {
	switch {
	case len(nodes) == 0:
		return "other nodes are" // which ended meanwhile
	case len(nodes) == 1:
		return "node " + nodes[0] + " is"
	case len(nodes) > 3:
		return fmt.Sprintf("nodes %s and %d more are", strings.Join(nodes[:3], ", "), len(nodes)-3)
	}
	return "nodes " + strings.Join(nodes, ", ") + " are"
}
