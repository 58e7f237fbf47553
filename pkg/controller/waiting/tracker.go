package waiting

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// pause is the time between two events: the recorder drops events, those of other senders
// too, if the API server does not take them soon enough.
const pause = 20 * time.Millisecond

// Deletion is a deletion that waits.
type Deletion struct {
	Object v1.ObjectReference
	// Finalizer keeps the object. One program keeps an object for one finalizer at a time.
	Finalizer finalizer.Name
	// Since is when the deletion began, by the clock of the API server; zero if unknown.
	Since  time.Time
	Reason blocker.Reason
	// Blocker returns what the deletion waits for now, by the caches, or false if it waits
	// for this program only. It must be safe for concurrent use.
	Blocker func() (blocker.Blocker, bool)
	// Exists reports whether the cache has the object: the object may vanish while its
	// reconciler is busy. Nil: Forget is always called after Wait.
	Exists func() bool
	// Reported: the program has just sent a more exact event about the wait.
	Reported bool
}

// Tracker tracks the deletions that wait in one program. It is safe for concurrent use. A
// nil Tracker tracks nothing.
type Tracker struct {
	clock clock.WithTicker
	// reasons are the reasons of the program, whose metrics exist without deletions too.
	reasons []blocker.Reason
	queue   workqueue.TypedDelayingInterface[types.UID]

	mu       sync.Mutex
	recorder record.EventRecorder
	refuses  func(namespace string) bool
	tracked  map[types.UID]*tracked
}

// tracked is a deletion, with the times by the clock of this process.
type tracked struct {
	Deletion
	// waits: the deletion waits now.
	waits bool
	// first is when the wait was seen first; sent and reported are when the event and a
	// more exact event were sent last, or zero.
	first, sent, reported time.Time
	// queued: the queue has the object.
	queued bool
}

// New returns a tracker of deletions with these reasons. It sends no events before SendTo.
func New(clock clock.WithTicker, reasons ...blocker.Reason) *Tracker {
	return &Tracker{
		clock: clock, reasons: reasons, tracked: map[types.UID]*tracked{}, refuses: func(string) bool { return false },
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{Clock: clock,
			Name: "deletionwaiting"}),
	}
}

// SendTo has the events sent by the recorder, except in namespaces that refuse events.
func (t *Tracker) SendTo(recorder record.EventRecorder, refuses func(namespace string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorder, t.refuses = recorder, refuses
}

// Wait records that the deletion waits. It is called again for every change.
func (t *Tracker) Wait(deletion Deletion) {
	if t == nil {
		return
	}
	t.record(deletion)
	if deletion.Exists != nil && !deletion.Exists() {
		t.Forget(deletion.Object.UID)
	}
}

func (t *Tracker) record(deletion Deletion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, entry := t.clock.Now(), t.tracked[deletion.Object.UID]
	if entry == nil {
		entry = &tracked{}
		t.tracked[deletion.Object.UID] = entry
	}
	if !entry.waits {
		entry.first = now
	}
	entry.Deletion, entry.waits = deletion, true
	if deletion.Reported {
		entry.reported = now
	}
	if !entry.queued {
		t.requeue(entry, now.Add(blocker.EventDelay))
	}
}

// requeue adds the object to the queue at the time. The caller holds the lock.
func (t *Tracker) requeue(entry *tracked, at time.Time) {
	entry.queued = true
	t.queue.AddAfter(entry.Object.UID, at.Sub(t.clock.Now()))
}

// Clear records that the finalizer no longer keeps the object waiting.
func (t *Tracker) Clear(object types.UID, name finalizer.Name) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.tracked[object]
	switch {
	case entry == nil || entry.Finalizer != name:
	case entry.sent.IsZero() && entry.reported.IsZero():
		delete(t.tracked, object)
	default: // the interval between two events goes on
		entry.waits = false
	}
}

// Forget drops an object that is gone.
func (t *Tracker) Forget(object types.UID) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tracked, object)
}

// Run sends the events until the context ends.
func (t *Tracker) Run(ctx context.Context) {
	if t == nil {
		return
	}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			t.next(ctx)
		}
	})
	<-ctx.Done()
	t.queue.ShutDown()
	running.Wait()
}

// next takes an object from the queue and decides on its event. It returns at once after
// the queue is shut down.
func (t *Tracker) next(ctx context.Context) {
	object, stopped := t.queue.Get()
	if stopped {
		return
	}
	defer t.queue.Done(object)
	deletion, found := t.deletionOf(object)
	if !found {
		return
	}
	current, waits := deletion.Blocker()
	if event := t.decide(ctx, object, current, waits); event != "" {
		t.send(deletion.Object, event)
		select {
		case <-t.clock.After(pause):
		case <-ctx.Done():
		}
	}
}

// deletionOf returns the deletion of the object if it waits.
func (t *Tracker) deletionOf(object types.UID) (Deletion, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.tracked[object]
	if entry == nil {
		return Deletion{}, false
	}
	entry.queued = false
	if !entry.waits {
		return Deletion{}, false
	}
	return entry.Deletion, true
}

// decide returns the text of the event to be sent now, "" for none, and requeues the object.
func (t *Tracker) decide(ctx context.Context, object types.UID, current blocker.Blocker, waits bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, entry := t.clock.Now(), t.tracked[object]
	if entry == nil || !entry.waits || entry.queued {
		return ""
	}
	if !waits {
		t.requeue(entry, now.Add(blocker.EventDelay))
		return ""
	}
	entry.Reason = current.Reason
	decision := blocker.DecideEvent(t.stateOf(entry, now))
	klog.FromContext(ctx).V(4).Info("Decided on the event of a deletion", "object",
		klog.KRef(entry.Object.Namespace, entry.Object.Name), "action", decision.Action, "reason", decision.Reason, "blocker",
		current.Reason)
	switch decision.Action {
	case blocker.SendEvent:
		entry.sent = now
		t.requeue(entry, now.Add(blocker.EventInterval))
		return current.EventText()
	case blocker.Postpone:
		t.requeue(entry, entry.until(decision.Reason))
	case blocker.NoEvent:
	}
	return ""
}

func (t *Tracker) stateOf(entry *tracked, now time.Time) blocker.EventState {
	return blocker.EventState{
		Waited:               now.Sub(entry.first) >= blocker.EventDelay,
		SentRecently:         !entry.sent.IsZero() && now.Sub(entry.sent) < blocker.EventInterval,
		MoreExactEvent:       !entry.reported.IsZero() && now.Sub(entry.reported) < blocker.EventLifetime,
		NamespaceTerminating: entry.Object.Namespace != "" && t.refuses(entry.Object.Namespace),
	}
}

// until returns when the reason to postpone the event ends.
func (e *tracked) until(reason blocker.EventReason) time.Time {
	switch reason {
	case blocker.MoreExactEvent:
		return e.reported.Add(blocker.EventLifetime)
	case blocker.SentRecently:
		return e.sent.Add(blocker.EventInterval)
	default:
		return e.first.Add(blocker.EventDelay)
	}
}

// send sends the event. Its type is Normal: "exeunt why" takes a warning for an error that
// its sender reports.
func (t *Tracker) send(object v1.ObjectReference, text string) {
	t.mu.Lock()
	recorder := t.recorder
	t.mu.Unlock()
	if recorder != nil {
		recorder.Event(&object, v1.EventTypeNormal, blocker.EventName, text)
	}
}
