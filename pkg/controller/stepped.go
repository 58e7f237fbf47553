package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Stepped runs the keys of a loop one by one, when its caller wants it: a simulation decides
// the order, and time does not pass by itself.
type Stepped struct {
	loop *Loop

	mu sync.Mutex
	// keys are the keys in the queue; true for a key that waits for a time.
	keys map[string]bool
}

// Step replaces the workqueue of the loop. It is called before anything is enqueued, and
// instead of [Loop.Run].
func (l *Loop) Step() *Stepped {
	s := &Stepped{loop: l, keys: map[string]bool{}}
	l.queue.ShutDown()
	l.queue = steppedQueue{Stepped: s}
	return s
}

// Name returns the name of the loop.
func (s *Stepped) Name() string { return s.loop.name }

// Keys returns the keys that can be reconciled at once, and those that wait for a time, in
// order.
func (s *Stepped) Keys() (due, later []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if s.keys[key] {
			later = append(later, key)
		} else {
			due = append(due, key)
		}
	}
	return due, later
}

// Reconcile takes the key from the queue and reconciles it; a key that fails is enqueued
// again for later, as [Loop.Run] does.
func (s *Stepped) Reconcile(ctx context.Context, key string) {
	s.mu.Lock()
	delete(s.keys, key)
	s.mu.Unlock()
	if err := s.loop.reconcileSafely(ctx, key); err != nil && ctx.Err() == nil {
		s.enqueue(key, true)
	}
}

// enqueue adds a key. A key that is due stays due.
func (s *Stepped) enqueue(key string, later bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits, known := s.keys[key]; !known || waits {
		s.keys[key] = later
	}
}

// steppedQueue is the workqueue of a loop that is stepped: only adding has an effect.
type steppedQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	*Stepped
}

func (q steppedQueue) Add(key string) { q.enqueue(key, false) }

func (q steppedQueue) AddAfter(key string, wait time.Duration) { q.enqueue(key, wait > 0) }

func (q steppedQueue) Forget(string) {}
