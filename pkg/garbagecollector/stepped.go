package garbagecollector

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// Stepped carries out the steps of a collector one by one, when its caller wants it: a simulation
// decides on their order, and on what each watch delivers. It takes the place of [Collector.Watch]
// and [Collector.Collect].
type Stepped struct {
	collector *Collector
	feeds     []Feed
}

// Feed takes what the list and the watch of one kind deliver, in the place of a reflector.
type Feed interface {
	cache.ReflectorStore
	cache.ResourceVersionUpdater
}

// Step returns a collector of these kinds with the queue in the place of its own.
func Step(config Config, queue workqueue.TypedRateLimitingInterface[types.UID], kinds ...*graph.Kind) *Stepped {
	c := newCollector(&config, queue)
	c.writer.repeats = nil // it decides when a write is sent, not whether
	c.graph.SetVirtualLifetime(0)
	s := &Stepped{collector: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discovery.discovered = true
	for _, kind := range kinds {
		m := &monitor{watches: c.watches, kind: kind, stop: func() {}}
		c.watches.monitors[kind.GroupKind()] = m
		c.graph.Serve(kind)
		s.feeds = append(s.feeds, m)
	}
	return s
}

// Feed returns the feed of the kind with the number.
func (s *Stepped) Feed(kind int) Feed { return s.feeds[kind] }

// Begin begins the collection.
func (s *Stepped) Begin() { s.collector.begin() }

// Reconcile judges an object as a worker does.
func (s *Stepped) Reconcile(ctx context.Context, uid types.UID) {
	s.collector.worker.finish(ctx, uid, s.collector.worker.reconcile(ctx, uid))
}

// IsSilent reports whether a worker would send nothing for the object now.
func (s *Stepped) IsSilent(uid types.UID) bool {
	j, found := s.collector.judge(uid)
	action := garbage.Decide(j.State).Action
	return !found || action == garbage.Wait || action == garbage.AwaitBarrier
}

// AwaitsBarrier reports whether a deletion needs a barrier.
func (s *Stepped) AwaitsBarrier() bool {
	s.collector.mu.Lock()
	defer s.collector.mu.Unlock()
	for uid := range s.collector.barriers.pending {
		if !s.collector.graph.HasPassed(uid, s.collector.clock.Now()) {
			return true
		}
	}
	return false
}

// Pending returns the deletions that need a barrier, with their epochs.
func (s *Stepped) Pending() map[types.UID]uint64 {
	s.collector.mu.Lock()
	defer s.collector.mu.Unlock()
	pending := map[types.UID]uint64{}
	for uid := range s.collector.barriers.pending {
		pending[uid], _, _ = s.collector.graph.Epoch(uid)
	}
	return pending
}

// RunBarrier runs one barrier for all deletions that need one.
func (s *Stepped) RunBarrier(ctx context.Context) {
	if owners := s.collector.barriers.takePending(); len(owners) > 0 {
		s.collector.barriers.runBarrier(ctx, owners)
	}
}

// HasEnded reports whether the collector has ended, because etcd was restored.
func (s *Stepped) HasEnded() bool { return s.collector.restore.isRestored() }

// AwaitsCycles reports whether a search for cycles is due.
func (s *Stepped) AwaitsCycles() bool { return len(s.collector.cycles.wanted) > 0 }

// HasReleasable reports whether a search for cycles would read or release owners now.
func (s *Stepped) HasReleasable() bool {
	s.collector.mu.Lock()
	defer s.collector.mu.Unlock()
	for _, c := range s.collector.graph.Components() {
		if action := garbage.DecideComponent(stateOf(c)); action != garbage.AwaitOutside && action != garbage.AwaitMembers {
			return true
		}
	}
	return false
}

// ReleaseCycles searches for cycles of owners once, and releases them.
func (s *Stepped) ReleaseCycles(ctx context.Context) {
	select {
	case <-s.collector.cycles.wanted:
	default:
	}
	delays := newCycleDelays()
	s.collector.cycles.releaseFound(ctx, delays)
	if _, failed := delays.next(); failed {
		s.collector.cycles.wanted.wake()
	}
}

// Memory are pointers to all that the collector remembers, and nothing else.
func (s *Stepped) Memory() []any {
	c := s.collector
	memory := []any{c.graph, &c.working,
		&c.barriers.pending, &c.watches.run, &c.barriers.unread, &c.discovery.hidden, &c.barriers.hiddenExcused,
	}
	for _, feed := range s.feeds {
		if m, ok := feed.(*monitor); ok {
			memory = append(memory, &m.position, &m.reached, &m.listed)
		}
	}
	return memory
}
