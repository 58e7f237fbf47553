package garbagecollector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// queueName is upstream's, so that the metrics of the queue have upstream's names.
	queueName = "garbage_collector_attempt_to_delete"
	// minRetry and maxRetry bound the backoff of an object.
	minRetry, maxRetry = 5 * time.Millisecond, 30 * time.Second
	// SyncTimeout is how long the collection waits for the first list of every kind.
	SyncTimeout = 30 * time.Second
	// remembered is the number of remembered events about owners in other namespaces.
	remembered = 4096
)

// Config configures a collector.
type Config struct {
	// Reads lists and watches metadata, Barriers lists them for barriers. Live reads single
	// objects; it must have no rate limit, and is Reads if nil.
	Reads, Barriers, Live metadata.Interface
	// REST sends the writes, and reads the definitions of kinds. It must have no rate limit.
	REST      rest.Interface
	Discovery discovery.DiscoveryInterface
	Recorder  record.EventRecorder
	Clock     clock.WithTicker
	// Limiter limits the writes, ReadLimiter the live reads; nil for no limit.
	Limiter, ReadLimiter flowcontrol.RateLimiter
	// Throttle delays all requests while the API server is overloaded; nil for never. The transports of
	// the clients must be wrapped by it.
	Throttle *Throttle
	// Detection finds out whether other garbage collectors work in the cluster; nil for no detection.
	Detection *Detection
	// Workers is the number of objects that are judged at once.
	Workers int
	// DryRun logs the writes instead of sending them.
	DryRun bool
	// Ignored are the resources that are not collected, beside events.
	Ignored []schema.GroupResource
	// UnreadableAfter is how long a barrier waits for kinds that cannot be read.
	UnreadableAfter time.Duration
	// OrphanUnreadableAfter is how long a deletion with the policy Orphan waits for such kinds, at least
	// UnreadableAfter; 0 for ever.
	OrphanUnreadableAfter time.Duration
}

// Collector collects garbage. It is safe for concurrent use.
type Collector struct {
	Config
	*sharedGraph
	*restore
	*watches
	discovery *kindDiscovery
	live      *liveReads
	writer    *writer
	others    *otherCollectors
	queue     workqueue.TypedRateLimitingInterface[types.UID]
	invalid   *lru.Cache
	metrics   *counters
	started   time.Time
	// cyclic wakes the search for cycles.
	cyclic signal

	// pending are the deletions that need a barrier.
	pending map[types.UID]struct{}
	// unread are the kinds that the last barrier passed without.
	unread []*graph.Kind
	// hiddenExcused: the last barrier passed without the kinds that discovery knows the group of only.
	hiddenExcused bool
	// unreadSince are, for orphaning owners that wait for such kinds, their deletions with the time of the first barrier.
	unreadSince map[types.UID]deletion
	told        map[types.UID]*progress
}

// New returns a collector that does nothing yet.
func New(config Config) *Collector {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](minRetry, maxRetry)
	c := &Collector{
		Config:  config,
		queue:   workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: queueName, Clock: config.Clock}),
		invalid: lru.New(remembered),
		metrics: newCounters(),
		started: config.Clock.Now(),
		cyclic:  newSignal(),
		pending: map[types.UID]struct{}{}, unreadSince: map[types.UID]deletion{}, told: map[types.UID]*progress{},
	}
	c.sharedGraph = newSharedGraph(config.Clock, func(uid types.UID) { c.queue.Add(uid) })
	c.restore, c.others = newRestore(), newOtherCollectors(&c.Config)
	c.watches = newWatches(c.sharedGraph, c.restore, config.Reads)
	c.discovery = newKindDiscovery(&c.Config, c.sharedGraph, c.watches, c.metrics)
	c.live = newLiveReads(&c.Config, c.sharedGraph, c.watches)
	c.writer = newWriter(&c.Config, c.watches, c.live, c.metrics)
	c.graph.SetVirtualLifetime(virtualLifetime)
	return c
}

// Watch discovers the kinds and fills the graph until the context ends. It writes nothing. The error is [ErrRestored].
func (c *Collector) Watch(ctx context.Context) error {
	ctx, end := c.untilRestored(ctx)
	c.watchWithin(ctx)
	c.discovery.discoverRepeatedly(ctx)
	c.monitoring.Wait()
	return end()
}

// Collect deletes garbage until the context ends. Watch must be running. The error is [ErrRestored].
func (c *Collector) Collect(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	ctx, end := c.untilRestored(ctx)
	if !c.waitForSync(ctx) {
		return end()
	}
	logger.Info("Collecting garbage", "workers", c.Workers, "dryRun", c.DryRun)
	var running wait.Group
	for range c.Workers {
		running.StartWithContext(ctx, c.work)
	}
	running.StartWithContext(ctx, c.runBarriers)
	running.StartWithContext(ctx, c.releaseCycles)
	running.StartWithContext(ctx, c.reportProgress)
	running.StartWithContext(ctx, c.others.detect)
	c.begin()
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return end()
}

// waitForSync waits until all kinds are listed, at most for the timeout. It returns false if
// the context ended.
func (c *Collector) waitForSync(ctx context.Context) bool {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, SyncTimeout, true, func(context.Context) (bool, error) { return c.discovery.unlisted() == nil, nil })
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("Not all kinds are listed; collecting without them", "reason", c.discovery.unlisted())
	}
	return ctx.Err() == nil
}

// Ready returns nil once all kinds are listed, or the timeout has passed since the start.
func (c *Collector) Ready() error {
	if c.Clock.Since(c.started) >= SyncTimeout {
		return nil
	}
	return c.discovery.unlisted()
}
