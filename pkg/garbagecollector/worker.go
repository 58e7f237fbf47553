package garbagecollector

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// maxSteps bounds the steps for one object in one turn.
	maxSteps = 10
	// queueName is upstream's, so that the metrics of the queue have upstream's names.
	queueName = "garbage_collector_attempt_to_delete"
	// minRetry and maxRetry bound the backoff of an object.
	minRetry, maxRetry = 5 * time.Millisecond, 30 * time.Second
	// remembered is the number of remembered events about owners in other namespaces.
	remembered = 4096
)

// errUnfinished requeues an object that changes all the time.
var errUnfinished = errors.New("the object changes all the time")

// worker judges objects, and carries out the decisions. Several goroutines share it.
//
// It has a loop of its own beside [controller.Loop], which would need four exceptions: the clock of a model, the delay
// that an API server suggests, a pause that is no failure, and requests that end at once with the lease.
type worker struct {
	*sharedGraph
	queue    workqueue.TypedRateLimitingInterface[types.UID]
	live     *liveReads
	writer   *writer
	barriers *barriers
	others   *otherCollectors
	recorder record.EventRecorder
	// cycles wakes the search for cycles.
	cycles signal
	// displaced are the references to owners in other namespaces about which an event was sent. The cache has its own
	// mutex.
	displaced *lru.Cache
}

func newQueue(clock clock.WithTicker) workqueue.TypedRateLimitingInterface[types.UID] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](minRetry, maxRetry)
	config := workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: queueName, Clock: clock}
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
}

// run judges objects of the queue until it is shut down.
func (w *worker) run(ctx context.Context) {
	for {
		uid, stopped := w.queue.Get()
		if stopped {
			return
		}
		if ctx.Err() == nil { // a queue that was shut down still hands out what it has
			w.finish(ctx, uid, w.reconcile(ctx, uid))
		}
		w.queue.Done(uid)
	}
}

// finish requeues the object after an error.
func (w *worker) finish(ctx context.Context, uid types.UID, err error) {
	if err == nil {
		w.queue.Forget(uid)
		return
	}
	if ctx.Err() != nil {
		return
	}
	klog.FromContext(ctx).V(2).Info("Object is retried", "uid", uid, "err", err)
	// Beside an owner that cannot be read the object is judged again sooner: the write that was undone has its own pause.
	if reverted := (*controller.RevertedError)(nil); errors.As(err, &reverted) && !isJoined(err) {
		w.queue.AddAfter(uid, reverted.After)
		return
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		w.queue.AddAfter(uid, min(time.Duration(seconds)*time.Second, maxPause))
		return
	}
	w.queue.AddRateLimited(uid)
}

// isJoined reports whether the error is that of an owner that cannot be read, and another one.
func isJoined(err error) bool {
	var joined interface{ Unwrap() []error }
	return errors.As(err, &joined)
}

// reconcile judges an object, decides, and executes, until nothing is to be done.
func (w *worker) reconcile(ctx context.Context, uid types.UID) error {
	t := &turn{}
	for range maxSteps {
		j, found := w.judge(uid)
		if !found {
			return nil
		}
		if w.others.isTestLease(j.Object) { // it would be taken for one that another collector deleted
			w.queue.AddAfter(uid, testLeaseRecheck)
			return nil
		}
		w.reportDisplaced(j)
		decision := garbage.Decide(j.State)
		klog.FromContext(ctx).V(4).Info("Decided", "resource", j.Kind.GroupResource(),
			"object", klog.KRef(j.Namespace, j.Name), "uid", uid, "action", decision.Action, "reason", decision.Reason)
		next, err := w.execute(ctx, j, decision, t)
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
func (w *worker) execute(ctx context.Context, j graph.Judgement, d garbage.Decision, t *turn) (outcome, error) {
	still := func() bool { return w.decides(j.UID, d.Action, t) }
	switch d.Action {
	case garbage.Wait:
		w.wait(j, d.Reason)
		return done, nil
	case garbage.VerifyObject:
		return again, w.live.verifyObject(ctx, j.Object)
	case garbage.VerifyOwners:
		if err := w.live.verifyOwners(ctx, j.Questions); err != nil {
			return done, errors.Join(err, w.executeWithoutUnread(ctx, j.UID, t))
		}
		return again, nil
	case garbage.AwaitBarrier:
		w.barriers.await(j.Unseen)
		return done, nil
	case garbage.RemoveReferences:
		return w.writer.patch(ctx, j, &t.attempt, removal{"remove_references", removeReferences(j.Object, j.Remove), nil})
	case garbage.RemoveForeground:
		operations := removeFinalizer(j.Object, j.ForegroundIndex, metav1.FinalizerDeleteDependents)
		return w.writer.patch(ctx, j, &t.attempt, removal{"remove_foreground", operations, still})
	case garbage.RemoveOrphan:
		operations := removeFinalizer(j.Object, j.OrphanIndex, metav1.FinalizerOrphanDependents)
		return w.writer.patch(ctx, j, &t.attempt, removal{"remove_orphan", operations, still})
	case garbage.DeleteBackground, garbage.DeleteForeground, garbage.DeleteOrphan:
		return w.writer.delete(ctx, j, d.Action, &t.attempt)
	}
	return done, nil
}

// decides reports whether the action is the decision on the object now. The events about dependents do not change
// the version of their owner.
func (w *worker) decides(uid types.UID, action garbage.Action, t *turn) bool {
	j, found := w.judge(uid)
	if t.withoutUnread {
		leaveOutUnread(&j.State)
	}
	return found && garbage.Decide(j.State).Action == action
}

// executeWithoutUnread carries out what may be done although owners cannot be read.
func (w *worker) executeWithoutUnread(ctx context.Context, uid types.UID, t *turn) error {
	j, found := w.judge(uid)
	if !found || !j.State.Unverified {
		return nil
	}
	t.withoutUnread = true
	leaveOutUnread(&j.State)
	_, err := w.execute(ctx, j, garbage.Decide(j.State), t)
	return err
}

// leaveOutUnread has the owners that cannot be read count as unresolvable: they may live, so that the object is not
// deleted, but its other owners need not wait for that.
func leaveOutUnread(s *garbage.State) {
	s.Unverified, s.Unresolvable = false, s.Unresolvable || s.Unverified
}

func (w *worker) wait(j graph.Judgement, reason garbage.Reason) {
	switch {
	case reason == garbage.DependentsBlock:
		w.cycles.wake()
	case !j.Recheck.IsZero():
		w.queue.AddAfter(j.UID, j.Recheck.Sub(w.clock.Now()))
	}
}

// reportDisplaced sends the event about owners in another namespace, once per reference.
func (w *worker) reportDisplaced(j graph.Judgement) {
	for _, d := range j.Displaced {
		key := string(j.UID) + " " + string(d.Owner)
		if _, told := w.displaced.Get(key); told {
			continue
		}
		w.displaced.Add(key, nil)
		w.recorder.Eventf(referenceTo(j.Object), v1.EventTypeWarning, blocker.InvalidNamespaceEvent,
			"ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			d.APIVersion, d.Kind, j.Namespace, d.Name, d.Owner, j.Namespace)
	}
}
