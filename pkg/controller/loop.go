package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Loop is a workqueue and the workers that reconcile its keys, one worker per key at a
// time.
type Loop struct {
	name      string
	queue     workqueue.TypedRateLimitingInterface[string]
	reconcile func(ctx context.Context, key string) error

	backoff Backoff
	// failed and stale count the retries of each key: after failures, and because an object
	// was stale.
	failed, stale workqueue.TypedRateLimiter[string]

	mu sync.Mutex
	// paused are the keys that returned ErrTooManySteps, and the end of their backoff.
	paused map[string]time.Time
}

// ErrStaleCache: the cache has not seen our own last write, or an object that a live
// read returned. The key is requeued, first after staleBackoff.
var ErrStaleCache = errors.New("the cache is older than the API server")

// Backoff bounds the time between two retries of one key.
type Backoff struct {
	Initial, Max time.Duration
}

// Within returns the backoff with at most the limit between two retries; 0 is no limit.
func (b Backoff) Within(limit time.Duration) Backoff {
	if limit > 0 {
		b.Max = min(b.Max, limit)
	}
	return b
}

// staleBackoff is the first backoff of a key whose object was stale: the watch event is
// expected soon. It doubles with each retry; once it reaches the backoff of a failure, the
// key counts as failed.
const staleBackoff = 20 * time.Millisecond

// NewLoop returns a loop. The metrics of its workqueue carry the name.
func NewLoop(name string, backoff Backoff, reconcile func(ctx context.Context, key string) error) *Loop {
	failed := workqueue.NewTypedItemExponentialFailureRateLimiter[string](backoff.Initial, backoff.Max)
	return &Loop{
		name: name,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(failed,
			workqueue.TypedRateLimitingQueueConfig[string]{Name: name}),
		reconcile: reconcile,
		backoff:   backoff,
		failed:    failed,
		stale:     workqueue.NewTypedItemExponentialFailureRateLimiter[string](staleBackoff, backoff.Max),
		paused:    map[string]time.Time{},
	}
}

// Enqueue adds the key to the workqueue, which holds it once.
func (l *Loop) Enqueue(key string) {
	l.queue.Add(key)
}

// EnqueueAfter adds the key to the workqueue after the time, or earlier if it is enqueued
// for an earlier time.
func (l *Loop) EnqueueAfter(key string, wait time.Duration) {
	l.queue.AddAfter(key, wait)
}

// Run reconciles with so many workers until the context ends, and returns when the last
// worker has finished its object. Requests of a worker that takes longer than
// [ShutdownGracePeriod] are canceled.
func (l *Loop) Run(ctx context.Context, workers int) {
	working, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for l.next(ctx, working) {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	defer time.AfterFunc(ShutdownGracePeriod, abort).Stop()
	running.Wait()
}

// next takes a key and reconciles it in the context working. It returns false once ctx
// has ended.
func (l *Loop) next(ctx, working context.Context) bool {
	key, stopped := l.queue.Get()
	if stopped {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	if wait := l.pausedFor(key); wait > 0 {
		l.queue.AddAfter(key, wait)
		return true
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "queue", l.name, "key", key)
	err := l.reconcileSafely(klog.NewContext(working, logger), key)
	switch {
	case err == nil:
		l.queue.Forget(key)
		l.stale.Forget(key)
		return true
	case ctx.Err() != nil:
		return false
	case isStale(err):
		logger.V(4).Info("Object changed meanwhile, requeueing", "err", err)
	default:
		logger.Error(err, "Reconciling failed, requeueing")
	}
	wait := l.retryDelay(key, err)
	var reverted *RevertedError
	if errors.As(err, &reverted) {
		wait = max(wait, reverted.After)
	}
	if errors.Is(err, ErrTooManySteps) {
		l.pause(key, wait)
	}
	l.queue.AddAfter(key, wait)
	return true
}

// isStale reports whether an object has changed meanwhile, or the cache is stale.
func isStale(err error) bool {
	return patch.IsStale(err) || errors.Is(err, ErrStaleCache)
}

// retryDelay counts the error, and returns the time until the key is reconciled again.
func (l *Loop) retryDelay(key string, err error) time.Duration {
	if isStale(err) {
		if wait := l.stale.When(key); wait < l.backoff.Initial {
			return wait
		}
	}
	return l.failed.When(key)
}

// pause has the workers skip the key until the time has passed.
func (l *Loop) pause(key string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused[key] = time.Now().Add(wait)
}

// pausedFor returns how long the key is still paused.
func (l *Loop) pausedFor(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := time.Until(l.paused[key])
	if wait <= 0 {
		delete(l.paused, key)
	}
	return wait
}

// reconcileSafely returns a panic as an error, so that one object does not stop the others.
func (l *Loop) reconcileSafely(ctx context.Context, key string) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reconcile %s: panic: %v\n%s", key, cause, debug.Stack())
		}
	}()
	return l.reconcile(ctx, key)
}

// ShutdownGracePeriod is the time that a worker has to finish its object after its context
// has ended. It is shorter than the rest of a lease that could not be renewed.
const ShutdownGracePeriod = 3 * time.Second

// Term is the time during which this process leads, from acquiring its lease.
type Term interface {
	// Leading reports whether this process leads for longer than it takes to stop, and its
	// lease was found unchanged since the connection to the API server was last interrupted:
	// etcd was not restored from a backup. It may wait for a read of the lease.
	Leading() bool
	// ID identifies the lease as it was when this process acquired it.
	ID() TermID
}

// TermID identifies one term of one lease. A term of another process in between increases
// the number of transitions, and a lease that is created again has a new UID.
type TermID struct {
	LeaseUID    types.UID
	Transitions int32
}

// ErrLeaseEnding: what this process read while it led may have changed since.
var ErrLeaseEnding = errors.New("the leader lease is about to end, or was not found unchanged yet since the API server was away")

// CheckLeading returns [ErrLeaseEnding] if leading, nil for always, says that another process may lead soon, or that etcd
// may have been restored. It is called right before data is removed: a process that was frozen wakes up anywhere.
func CheckLeading(leading func() bool) error {
	if leading != nil && !leading() {
		return ErrLeaseEnding
	}
	return nil
}

// oldestRead is how old a read may be when data is removed because of it: less than an administrator needs to keep a volume or
// to restore etcd, and more than one request of 200 workers waits at the default limit of upstream, 5 a second.
const oldestRead = time.Minute

// CheckRead returns an error if what was read at this time is too old for the removal of data. A process without
// leader election that was frozen wakes up anywhere, too. While a machine is suspended, only the wall clock goes on.
// It is no [ErrStaleCache], which is not logged: requests that wait for longer each time are to be seen.
func CheckRead(at time.Time) error {
	if age := max(time.Since(at), time.Since(at.Round(0))); age > oldestRead {
		return fmt.Errorf("no data is removed because of what was read %v ago, volume and claim are read again: "+
			"requests wait for the limit of the client or for the API server, or this process was stopped", age.Round(time.Second))
	}
	return nil
}

// UnlimitedTerm returns the term of a process without leader election: it never ends, and
// its ID is zero. Such a process does not notice that etcd was restored.
func UnlimitedTerm() Term { return unlimited{} }

type unlimited struct{}

func (unlimited) Leading() bool { return true }
func (unlimited) ID() TermID    { return TermID{} }
