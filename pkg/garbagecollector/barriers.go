package garbagecollector

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// maxReads bounds the reads of one barrier that are in flight. The API server spends most of a consistent read
// waiting for etcd, so that few in flight would leave it idle.
const maxReads = 30

// await has a barrier begin for the deletions.
func (c *Collector) await(deletions []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uid := range deletions {
		c.pending[uid] = struct{}{}
	}
	c.awaited.wake()
}

// runBarriers runs barriers, one at a time, until the context ends. While kinds are unread and no deletion
// waits, a barrier now and then finds out when they can be read again.
func (c *Collector) runBarriers(ctx context.Context) {
	for ctx.Err() == nil {
		if owners := c.takePending(); len(owners) > 0 {
			c.runBarrier(ctx, owners)
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.awaited:
		case <-c.dueForUnread():
			c.runBarrier(ctx, nil)
		}
	}
}

// takePending returns the deletions that a barrier is to serve, with their epochs. Dependents may ask for a
// barrier of their owner while the one for it runs.
func (c *Collector) takePending() map[types.UID]deletion {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := map[types.UID]deletion{}
	for uid := range c.pending {
		if epoch, namespace, found := c.graph.Epoch(uid); found && !c.graph.HasPassed(uid, c.Clock.Now()) {
			owners[uid] = deletion{epoch, namespace, c.beganWaiting(uid, epoch)}
		}
	}
	clear(c.pending)
	return owners
}

// deletion is a deletion that a barrier serves.
type deletion struct {
	epoch     uint64
	namespace string
	// since is when the first barrier for the deletion began.
	since time.Time
}

// scope returns the namespace of all deletions, "" if they have several or none.
func scope(owners map[types.UID]deletion) string {
	common := ""
	for _, d := range owners {
		if d.namespace == "" || common != "" && common != d.namespace {
			return ""
		}
		common = d.namespace
	}
	return common
}

// runBarrier runs one barrier. The known kinds are read at once. The definitions of kinds tell
// which others there are.
func (c *Collector) runBarrier(ctx context.Context, owners map[types.UID]deletion) {
	began := c.Clock.Now()
	run := barrier.Begin[*graph.Kind](c.UnreadableAfter)
	c.mu.Lock()
	c.run = run
	r := &reads{Collector: c, run: run, namespace: scope(owners), slots: make(chan struct{}, maxReads)}
	defining := c.addKinds(run, defines)
	c.addKinds(run, r.inScope)
	for _, kind := range c.unread {
		run.Excuse(kind)
	}
	c.mu.Unlock()
	reading, stop := context.WithCancel(ctx)
	result, unread := r.follow(reading, defining)
	stop()
	r.running.Wait()
	c.mu.Lock()
	c.run = nil
	c.unread = append(unread, c.unreadOutside(r)...)
	c.hiddenExcused = result == barrier.PassedWithout && len(c.discovery.hidden) > 0
	c.mu.Unlock()
	if result == barrier.Running || ctx.Err() != nil { // or etcd was restored
		return
	}
	c.metrics.barriers.Observe(c.Clock.Since(began).Seconds())
	c.pass(ctx, owners, result, unread)
}

// addKinds adds the collected kinds for which the function returns true. The caller holds the
// lock.
func (c *Collector) addKinds(run *barrier.Run[*graph.Kind], wanted func(*graph.Kind) bool) (added []*graph.Kind) {
	for _, m := range c.monitors {
		if wanted(m.kind) {
			run.Add(m.kind)
			added = append(added, m.kind)
		}
	}
	slices.SortFunc(added, func(a, b *graph.Kind) int {
		return strings.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	for _, kind := range added {
		if !c.mayBeAggregated(kind) {
			run.Vouch(kind)
		}
	}
	return added
}

// reads are the reads of one barrier.
type reads struct {
	*Collector
	run       *barrier.Run[*graph.Kind]
	namespace string
	slots     chan struct{}
	running   wait.Group
	// sealable is when the kinds may be discovered again after a failure.
	sealable time.Time
}

// follow sends the reads of the run until it has a result.
func (r *reads) follow(ctx context.Context, defining []*graph.Kind) (barrier.Result, []*graph.Kind) {
	for {
		r.sealAfter(ctx, defining)
		r.mu.Lock()
		now := r.Clock.Now()
		result, unread := r.run.Result(now)
		requests, next := r.run.Next(now)
		r.mu.Unlock()
		if result != barrier.Running {
			return result, unread
		}
		for kind, request := range requests {
			r.running.Start(func() { r.send(ctx, kind, request) })
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = r.Clock.After(next.Sub(now))
		}
		select {
		case <-ctx.Done():
			return barrier.Running, nil
		case <-r.restored:
			return barrier.Running, nil
		case <-r.awaited:
		case <-timer:
		}
	}
}

// sealAfter adds the kinds that are new once the definitions are seen, or proved unreadable. The run goes on
// looking for them as long as some may be unknown.
func (r *reads) sealAfter(ctx context.Context, defining []*graph.Kind) {
	r.mu.Lock()
	complete, late := r.run.IsComplete(), r.run.IsLate(r.Clock.Now())
	r.mu.Unlock()
	if complete || r.Clock.Now().Before(r.sealable) {
		return
	}
	seen, ready := r.sawDefinitions(defining, late)
	if !ready {
		return
	}
	err := r.discovery.refreshKinds(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Kinds cannot be discovered for a barrier")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.run.Undiscovered()
	}
	complete = seen && err == nil && len(r.discovery.hidden) == 0
	if !complete {
		r.sealable = r.Clock.Now().Add(barrier.RetryTime)
		r.running.Start(func() { r.wakeAfter(ctx, barrier.RetryTime) })
	}
	if complete || late || err == nil && r.hiddenExcused {
		r.addKinds(r.run, r.inScope)
		r.run.Seal(complete)
	}
}

// sawDefinitions reports whether the graph has seen the definitions, and whether nothing more is to be
// expected of them: it has, or it is late and the others cannot be read.
func (r *reads) sawDefinitions(defining []*graph.Kind, late bool) (seen, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, ready = true, true
	for _, kind := range defining {
		if !r.run.Saw(kind) {
			seen, ready = false, ready && late && r.run.HasFailed(kind)
		}
	}
	return seen, ready
}

// inScope reports whether objects of the kind may be dependents of the owners.
func (r *reads) inScope(kind *graph.Kind) bool { return r.namespace == "" || kind.Namespaced }

// wakeAfter continues the run after the time.
func (r *reads) wakeAfter(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-r.Clock.After(after):
		r.awaited.wake()
	}
}

// send sends one read, and records its result. Definitions wait for no other read: other kinds
// may follow from them. Neither do checks, which find out why others wait.
func (r *reads) send(ctx context.Context, kind *graph.Kind, request barrier.Request) {
	if !defines(kind) && request != barrier.Check {
		select {
		case <-ctx.Done():
			return
		case r.slots <- struct{}{}:
		}
		defer func() { <-r.slots }()
	}
	r.metrics.reads.WithLabelValues(strings.ToLower(request.String())).Inc()
	var err error
	began := r.Clock.Now()
	switch request {
	case barrier.Check:
		r.check(ctx, kind)
	case barrier.Probe:
		err = r.first(ctx, kind)
	case barrier.List:
		err = r.list(ctx, kind, pageTimeout)
	}
	if err != nil && ctx.Err() == nil {
		r.fail(ctx, kind, began, err)
	}
	r.awaited.wake()
}

// fail records the failure of a read of the kind. An overloaded API server says nothing about the kind.
func (r *reads) fail(ctx context.Context, kind *graph.Kind, began time.Time, err error) {
	klog.FromContext(ctx).Info("A kind cannot be read for a barrier", "resource", kind.GroupResource(), "err", err)
	overload, refused := r.Throttle.remaining(), r.Throttle.hasRefused(kind.Group, began)
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := refused && !r.mayBeAggregated(kind)
	if busy {
		overload = max(overload, barrier.RetryTime)
	}
	if overload > 0 {
		r.run.Postponed(kind, r.Clock.Now().Add(overload))
		return
	}
	r.run.Failed(kind, r.Clock.Now())
}

// namespaceOf returns the namespace in which the kind is read.
func (r *reads) namespaceOf(kind *graph.Kind) string {
	if kind.Namespaced {
		return r.namespace
	}
	return ""
}
