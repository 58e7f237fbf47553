package garbagecollector

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// maxReads bounds the reads of one barrier that are in flight. The API server spends most of a consistent read
// waiting for etcd, so that few in flight would leave it idle.
const maxReads = 30

// barriers find out when the graph has seen every kind as of a read that began after a deletion was observed. Without
// that, a dependent that the watch has not shown yet is overlooked: its owner would be released before it.
type barriers struct {
	*sharedGraph
	watches   *watches
	discovery *kindDiscovery
	passes    *passes
	// client lists kinds.
	client   metadata.Interface
	throttle *Throttle
	metrics  *counters
	// unreadableAfter is how long a barrier waits for kinds that cannot be read.
	unreadableAfter time.Duration

	// The mutex of the graph guards the fields below.

	// pending are the deletions that need a barrier.
	pending map[types.UID]struct{}
	// unread are the kinds that the last barrier passed without; hiddenExcused: so it did without hidden groups.
	unread        []*graph.Kind
	hiddenExcused bool
}

func newBarriers(config *Config, discovery *kindDiscovery, passes *passes, metrics *counters) *barriers {
	return &barriers{
		sharedGraph: discovery.sharedGraph, watches: discovery.watches, discovery: discovery, passes: passes,
		client: config.Barriers, throttle: config.Throttle, metrics: metrics, unreadableAfter: config.UnreadableAfter,
		pending: map[types.UID]struct{}{},
	}
}

// await has a barrier begin for the deletions.
func (b *barriers) await(deletions []types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, uid := range deletions {
		b.pending[uid] = struct{}{}
	}
	b.watches.awaited.wake()
}

// runBarriers runs barriers, one at a time, until the context ends. While kinds are unread and no deletion
// waits, a barrier now and then finds out when they can be read again.
func (b *barriers) run(ctx context.Context) {
	for ctx.Err() == nil {
		if owners := b.takePending(); len(owners) > 0 {
			b.runBarrier(ctx, owners)
			continue
		}
		select {
		case <-ctx.Done():
		case <-b.watches.awaited:
		case <-b.dueForUnread():
			b.runBarrier(ctx, nil)
		}
	}
}

// takePending returns the deletions that a barrier is to serve, with their epochs. Dependents may ask for a
// barrier of their owner while the one for it runs.
func (b *barriers) takePending() map[types.UID]deletion {
	b.mu.Lock()
	defer b.mu.Unlock()
	owners := map[types.UID]deletion{}
	for uid := range b.pending {
		if epoch, namespace, found := b.graph.Epoch(uid); found && !b.graph.HasPassed(uid, b.clock.Now()) {
			owners[uid] = deletion{epoch, namespace, b.passes.beganWaiting(uid, epoch)}
		}
	}
	clear(b.pending)
	return owners
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
func (b *barriers) runBarrier(ctx context.Context, owners map[types.UID]deletion) {
	began := b.clock.Now()
	run := barrier.Begin[*graph.Kind](b.unreadableAfter)
	b.mu.Lock()
	b.watches.run = run
	r := &reads{barriers: b, run: run, namespace: scope(owners), slots: make(chan struct{}, maxReads)}
	defining := b.addKinds(run, defines)
	b.addKinds(run, r.inScope)
	for _, kind := range b.unread {
		run.Excuse(kind)
	}
	b.mu.Unlock()
	reading, stop := context.WithCancel(ctx)
	result, unread := r.follow(reading, defining)
	stop()
	r.running.Wait()
	b.mu.Lock()
	b.watches.run = nil
	b.unread = append(unread, b.unreadOutside(r)...)
	b.hiddenExcused = result == barrier.PassedWithout && len(b.discovery.hidden) > 0
	b.mu.Unlock()
	if result == barrier.Running || ctx.Err() != nil { // or etcd was restored
		return
	}
	b.metrics.barriers.Observe(b.clock.Since(began).Seconds())
	if result == barrier.PassedWithout {
		b.passes.passWithout(ctx, owners, b.describeUnseen(unread))
		return
	}
	b.passes.pass(owners)
}

// addKinds adds the collected kinds for which the function returns true. The caller holds the
// lock.
func (b *barriers) addKinds(run *barrier.Run[*graph.Kind], wanted func(*graph.Kind) bool) (added []*graph.Kind) {
	for _, m := range b.watches.monitors {
		if wanted(m.kind) {
			run.Add(m.kind)
			added = append(added, m.kind)
		}
	}
	slices.SortFunc(added, func(a, b *graph.Kind) int {
		return strings.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	for _, kind := range added {
		if !b.watches.mayBeAggregated(kind) {
			run.Vouch(kind)
		}
	}
	return added
}

// reads are the reads of one barrier.
type reads struct {
	*barriers
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
		now := r.clock.Now()
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
			timer = r.clock.After(next.Sub(now))
		}
		select {
		case <-ctx.Done():
			return barrier.Running, nil
		case <-r.watches.restored:
			return barrier.Running, nil
		case <-r.watches.awaited:
		case <-timer:
		}
	}
}

// sealAfter adds the kinds that are new once the definitions are seen, or proved unreadable. The run goes on
// looking for them as long as some may be unknown.
func (r *reads) sealAfter(ctx context.Context, defining []*graph.Kind) {
	r.mu.Lock()
	complete, late := r.run.IsComplete(), r.run.IsLate(r.clock.Now())
	r.mu.Unlock()
	if complete || r.clock.Now().Before(r.sealable) {
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
		r.sealable = r.clock.Now().Add(barrier.RetryTime)
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
	case <-r.clock.After(after):
		r.watches.awaited.wake()
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
	began := r.clock.Now()
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
	r.watches.awaited.wake()
}

// fail records the failure of a read of the kind. An overloaded API server says nothing about the kind.
func (r *reads) fail(ctx context.Context, kind *graph.Kind, began time.Time, err error) {
	klog.FromContext(ctx).Info("A kind cannot be read for a barrier", "resource", kind.GroupResource(), "err", err)
	overload, refused := r.throttle.remaining(), r.throttle.hasRefused(kind.Group, began)
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := refused && !r.watches.mayBeAggregated(kind)
	if busy {
		overload = max(overload, barrier.RetryTime)
	}
	if overload > 0 {
		r.run.Postponed(kind, r.clock.Now().Add(overload))
		return
	}
	r.run.Failed(kind, r.clock.Now())
}

// namespaceOf returns the namespace in which the kind is read.
func (r *reads) namespaceOf(kind *graph.Kind) string {
	if kind.Namespaced {
		return r.namespace
	}
	return ""
}
