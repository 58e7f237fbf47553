package garbagecollector

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// maxSteps bounds the steps for one object in one turn.
	maxSteps = 10
	// virtualLifetime is how long the first live read of an owner that is not in the graph keeps its dependents: its
	// kind is not collected, or not listed yet.
	virtualLifetime = 10 * time.Second
)

// errUnfinished requeues an object that changes all the time.
var errUnfinished = errors.New("the object changes all the time")

// work judges objects of the queue until it is shut down.
func (c *Collector) work(ctx context.Context) {
	for {
		uid, stopped := c.queue.Get()
		if stopped {
			return
		}
		if ctx.Err() == nil { // a queue that was shut down still hands out what it has
			c.finish(ctx, uid, c.reconcile(ctx, uid))
		}
		c.queue.Done(uid)
	}
}

// finish requeues the object after an error.
func (c *Collector) finish(ctx context.Context, uid types.UID, err error) {
	if err == nil {
		c.queue.Forget(uid)
		return
	}
	if ctx.Err() != nil {
		return
	}
	klog.FromContext(ctx).V(2).Info("Object is retried", "uid", uid, "err", err)
	if reverted := (*controller.RevertedError)(nil); errors.As(err, &reverted) {
		c.queue.AddAfter(uid, reverted.After)
		return
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		c.queue.AddAfter(uid, min(time.Duration(seconds)*time.Second, maxPause))
		return
	}
	c.queue.AddRateLimited(uid)
}

// reconcile judges an object, decides, and executes, until nothing is to be done.
func (c *Collector) reconcile(ctx context.Context, uid types.UID) error {
	t := &turn{}
	for range maxSteps {
		j, found := c.judge(uid)
		if !found {
			return nil
		}
		if c.others.isTestLease(j.Object) {
			c.queue.AddAfter(uid, testLeaseRecheck)
			return nil
		}
		c.reportDisplaced(j)
		decision := garbage.Decide(j.State)
		klog.FromContext(ctx).V(4).Info("Decided", "resource", j.Kind.GroupResource(), "object", klog.KRef(j.Namespace, j.Name), "uid", uid, "action", decision.Action, "reason", decision.Reason)
		next, err := c.execute(ctx, j, decision, t)
		if err != nil || next == done {
			return err
		}
		if next == conflict {
			t.conflicts++
		}
	}
	return errUnfinished
}

// turn is what happened while one object was judged.
type turn struct {
	attempt
	// withoutUnread: the object is judged without the owners that cannot be read.
	withoutUnread bool
}

// execute carries out one action.
func (c *Collector) execute(ctx context.Context, j graph.Judgement, d garbage.Decision, t *turn) (outcome, error) {
	still := func() bool { return c.decides(j.UID, d.Action, t) }
	switch d.Action {
	case garbage.Wait:
		c.wait(j, d.Reason)
		return done, nil
	case garbage.VerifyObject:
		return again, c.live.verifyObject(ctx, j.Object)
	case garbage.VerifyOwners:
		if err := c.live.verifyOwners(ctx, j.Questions); err != nil {
			return done, errors.Join(err, c.executeWithoutUnread(ctx, j.UID, t))
		}
		return again, nil
	case garbage.AwaitBarrier:
		c.await(j.Unseen)
		return done, nil
	case garbage.RemoveReferences:
		return c.writer.patch(ctx, j, &t.attempt, removal{"remove_references", removeReferences(j.Object, j.Remove), nil})
	case garbage.RemoveForeground:
		operations := removeFinalizer(j.Object, j.ForegroundIndex, metav1.FinalizerDeleteDependents)
		return c.writer.patch(ctx, j, &t.attempt, removal{"remove_foreground", operations, still})
	case garbage.RemoveOrphan:
		operations := removeFinalizer(j.Object, j.OrphanIndex, metav1.FinalizerOrphanDependents)
		return c.writer.patch(ctx, j, &t.attempt, removal{"remove_orphan", operations, still})
	case garbage.DeleteBackground, garbage.DeleteForeground, garbage.DeleteOrphan:
		return c.writer.delete(ctx, j, d.Action, &t.attempt)
	}
	return done, nil
}

// decides reports whether the action is the decision on the object now. The events about dependents do not change
// the version of their owner.
func (c *Collector) decides(uid types.UID, action garbage.Action, t *turn) bool {
	j, found := c.judge(uid)
	if t.withoutUnread {
		leaveOutUnread(&j.State)
	}
	return found && garbage.Decide(j.State).Action == action
}

// executeWithoutUnread carries out what may be done although owners cannot be read.
func (c *Collector) executeWithoutUnread(ctx context.Context, uid types.UID, t *turn) error {
	j, found := c.judge(uid)
	if !found || !j.State.Unverified {
		return nil
	}
	t.withoutUnread = true
	leaveOutUnread(&j.State)
	_, err := c.execute(ctx, j, garbage.Decide(j.State), t)
	return err
}

// leaveOutUnread has the owners that cannot be read count as unresolvable, which keeps the object, but need not keep
// its other owners waiting.
func leaveOutUnread(s *garbage.State) {
	s.Unverified, s.Unresolvable = false, s.Unresolvable || s.Unverified
}

func (c *Collector) wait(j graph.Judgement, reason garbage.Reason) {
	switch {
	case reason == garbage.DependentsBlock:
		c.cyclic.wake()
	case !j.Recheck.IsZero():
		c.queue.AddAfter(j.UID, j.Recheck.Sub(c.Clock.Now()))
	}
}

// reportDisplaced sends the event about owners in another namespace, once per reference.
func (c *Collector) reportDisplaced(j graph.Judgement) {
	for _, d := range j.Displaced {
		key := string(j.UID) + " " + string(d.Owner)
		if _, told := c.invalid.Get(key); told {
			continue
		}
		c.invalid.Add(key, nil)
		c.Recorder.Eventf(referenceTo(j.Object), v1.EventTypeWarning, blocker.InvalidNamespaceEvent, "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			d.APIVersion, d.Kind, j.Namespace, d.Name, d.Owner, j.Namespace)
	}
}
