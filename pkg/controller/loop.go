package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

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

	limiter workqueue.TypedRateLimiter[string]

	mu sync.Mutex
	// paused are the keys that returned ErrTooManySteps, and the end of their backoff.
	paused map[string]time.Time
}

// ErrStaleCache: the cache has not seen our own last write, or an object that a live
// read returned. The key is requeued with backoff.
var ErrStaleCache = errors.New("the cache is older than the API server")

// Backoff bounds the time between two retries of one key.
type Backoff struct {
	Initial, Max time.Duration
}

// NewLoop returns a loop. The metrics of its workqueue carry the name.
func NewLoop(name string, backoff Backoff, reconcile func(ctx context.Context, key string) error) *Loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](backoff.Initial, backoff.Max)
	return &Loop{
		name:      name,
		queue:     workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{Name: name}),
		reconcile: reconcile,
		limiter:   limiter,
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
		return true
	case ctx.Err() != nil:
		return false
	case patch.IsStale(err), errors.Is(err, ErrStaleCache):
		logger.V(4).Info("Object changed meanwhile, requeueing", "err", err)
	default:
		logger.Error(err, "Reconciling failed, requeueing")
	}
	wait := l.limiter.When(key)
	if errors.Is(err, ErrTooManySteps) {
		l.pause(key, wait)
	}
	l.queue.AddAfter(key, wait)
	return true
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
