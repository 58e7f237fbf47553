package garbagecollector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
)

// SyncTimeout is how long the collection waits for the first list of every kind.
const SyncTimeout = 30 * time.Second

// Collector collects garbage. It composes the parts, from the lowest one up, and is safe for concurrent use.
type Collector struct {
	*sharedGraph
	restore   *restore
	watches   *watches
	discovery *kindDiscovery
	live      *liveReads
	writer    *writer
	barriers  *barriers
	worker    *worker
	cycles    *cycles
	progress  *progressReports
	others    *otherCollectors
	metrics   *counters
	// workers is the number of objects that are judged at once.
	workers int
	started time.Time
}

// New returns a collector that does nothing yet.
func New(config Config) *Collector { return newCollector(&config, newQueue(config.Clock)) }

func newCollector(config *Config, queue workqueue.TypedRateLimitingInterface[types.UID]) *Collector {
	c := &Collector{
		sharedGraph: newSharedGraph(config.Clock, queue.Add), restore: newRestore(), others: newOtherCollectors(config),
		metrics: newCounters(), workers: config.Workers, started: config.Clock.Now(),
	}
	c.watches = newWatches(c.sharedGraph, c.restore, config.Reads)
	c.discovery = newKindDiscovery(config, c.sharedGraph, c.watches, c.metrics)
	c.live = newLiveReads(config, c.sharedGraph, c.watches)
	c.writer = newWriter(config, c.watches, c.live, c.metrics)
	searchCycles := newSignal()
	passes := &passes{
		sharedGraph: c.sharedGraph, recorder: config.Recorder, enqueueAfter: queue.AddAfter, cycles: searchCycles,
		orphanUnreadableAfter: config.OrphanUnreadableAfter, unreadSince: map[types.UID]deletion{},
	}
	c.barriers = newBarriers(config, c.discovery, passes, c.metrics)
	c.cycles = &cycles{
		sharedGraph: c.sharedGraph, live: c.live, writer: c.writer, barriers: c.barriers, recorder: config.Recorder,
		wanted: searchCycles,
	}
	c.worker = &worker{
		sharedGraph: c.sharedGraph, queue: queue, live: c.live, writer: c.writer, barriers: c.barriers, others: c.others,
		recorder: config.Recorder, cycles: searchCycles, displaced: lru.New(remembered),
	}
	c.progress = &progressReports{
		sharedGraph: c.sharedGraph, barriers: c.barriers, recorder: config.Recorder, told: map[types.UID]*progress{},
	}
	return c
}

// Watch discovers the kinds and fills the graph until the context ends. It writes nothing. The error is [ErrRestored].
func (c *Collector) Watch(ctx context.Context) error {
	ctx, end := c.restore.untilRestored(ctx)
	c.watches.watchWithin(ctx)
	c.discovery.discoverRepeatedly(ctx)
	c.watches.monitoring.Wait()
	return end()
}

// Collect deletes garbage until the context ends. Watch must be running. The error is [ErrRestored].
func (c *Collector) Collect(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	ctx, end := c.restore.untilRestored(ctx)
	if !c.waitForSync(ctx) {
		return end()
	}
	logger.Info("Collecting garbage", "workers", c.workers, "dryRun", c.writer.sender.dryRun)
	var running wait.Group
	for range c.workers {
		running.StartWithContext(ctx, c.worker.run)
	}
	running.StartWithContext(ctx, c.barriers.run)
	running.StartWithContext(ctx, c.cycles.run)
	running.StartWithContext(ctx, c.progress.run)
	running.StartWithContext(ctx, c.others.detect)
	c.begin()
	<-ctx.Done()
	c.worker.queue.ShutDown()
	running.Wait()
	return end()
}

// waitForSync waits until all kinds are listed, at most for the timeout. It returns false if
// the context ended.
func (c *Collector) waitForSync(ctx context.Context) bool {
	listed := func(context.Context) (bool, error) { return c.discovery.unlisted() == nil, nil }
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, SyncTimeout, true, listed)
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("Not all kinds are listed; collecting without them", "reason", c.discovery.unlisted())
	}
	return ctx.Err() == nil
}

// Ready returns nil once all kinds are listed, or the timeout has passed since the start.
func (c *Collector) Ready() error {
	if c.clock.Since(c.started) >= SyncTimeout {
		return nil
	}
	return c.discovery.unlisted()
}
