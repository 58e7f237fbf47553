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

	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// maxSteps bounds the steps for one object in one turn.
	maxSteps = 10
	// virtualRecheck is when an object is judged again whose owner lives and is not in the
	// graph: its kind is not collected, or not listed yet.
	virtualRecheck = 10 * time.Second
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
		c.finish(ctx, uid, c.reconcile(ctx, uid))
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
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		c.queue.AddAfter(uid, time.Duration(seconds)*time.Second)
		return
	}
	c.queue.AddRateLimited(uid)
}

// reconcile judges an object, decides, and executes, until nothing is to be done.
func (c *Collector) reconcile(ctx context.Context, uid types.UID) error {
	conflicts := 0
	for range maxSteps {
		j, found := c.judge(uid)
		if !found {
			return nil
		}
		c.reportDisplaced(j)
		decision := garbage.Decide(j.State)
		klog.FromContext(ctx).V(4).Info("Decided", "resource", j.Kind.GroupResource(), "object", klog.KRef(j.Namespace, j.Name), "uid", uid, "action", decision.Action, "reason", decision.Reason)
		next, err := c.execute(ctx, j, decision, conflicts)
		if err != nil || next == done {
			return err
		}
		if next == conflict {
			conflicts++
		}
	}
	return errUnfinished
}

// execute carries out one action.
func (c *Collector) execute(ctx context.Context, j graph.Judgement, d garbage.Decision, conflicts int) (outcome, error) {
	switch d.Action {
	case garbage.Wait:
		c.wait(j, d.Reason)
		return done, nil
	case garbage.VerifyObject:
		return again, c.verifyObject(ctx, j.Object)
	case garbage.VerifyOwners:
		return again, c.verifyOwners(ctx, j.Questions)
	case garbage.AwaitBarrier:
		c.await(j.Unseen)
		return done, nil
	case garbage.RemoveReferences:
		return c.patch(ctx, j, "remove_references", removeReferences(j.Object, j.Remove))
	case garbage.RemoveForeground:
		return c.patch(ctx, j, "remove_foreground", removeFinalizer(j.Object, j.ForegroundIndex, metav1.FinalizerDeleteDependents))
	case garbage.RemoveOrphan:
		return c.patch(ctx, j, "remove_orphan", removeFinalizer(j.Object, j.OrphanIndex, metav1.FinalizerOrphanDependents))
	case garbage.DeleteBackground, garbage.DeleteForeground, garbage.DeleteOrphan:
		return c.delete(ctx, j, d.Action, conflicts)
	}
	return done, nil
}

func (c *Collector) wait(j graph.Judgement, reason garbage.Reason) {
	switch {
	case reason == garbage.DependentsBlock:
		wake(c.cyclic)
	case j.Virtual:
		c.queue.AddAfter(j.UID, virtualRecheck)
	}
}

// verifyOwners reads the owners live. An owner that cannot be read does not keep others from
// being read.
func (c *Collector) verifyOwners(ctx context.Context, questions []graph.Question) error {
	var errs []error
	for _, question := range questions {
		if err := c.verifyOwner(ctx, question); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// reportDisplaced sends the event about owners in another namespace, once per reference.
func (c *Collector) reportDisplaced(j graph.Judgement) {
	for _, d := range j.Displaced {
		key := string(j.UID) + " " + string(d.Owner)
		if _, told := c.invalid.Get(key); told {
			continue
		}
		c.invalid.Add(key, nil)
		c.Recorder.Eventf(referenceTo(j.Object), v1.EventTypeWarning, "OwnerRefInvalidNamespace", "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			d.APIVersion, d.Kind, j.Namespace, d.Name, d.Owner, j.Namespace)
	}
}

// referenceTo returns the reference to the object for events.
func referenceTo(o graph.Object) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.Version}
}
