package garbagecollector

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// unreadRecheck is the time until kinds that could not be read are read again, if no deletion needs it earlier.
const unreadRecheck = time.Minute

// undiscovered stands for kinds that nobody can name.
const undiscovered = "kinds that cannot be discovered"

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

func (b *barriers) newReads(run *barrier.Run[*graph.Kind], namespace string) *reads {
	return &reads{
		sharedGraph: b.sharedGraph, watches: b.watches, client: b.client, throttle: b.throttle, metrics: b.metrics,
		run: run, namespace: namespace, slots: make(chan struct{}, maxReads),
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

// run runs barriers, one at a time, until the context ends. While kinds are unread and no deletion
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
	// Deletions that are observed from here on wait for the next barrier: of a dependent that was committed before one
	// of them, the kind may have been read already, and the owner would be released before the dependent.
	b.mu.Lock()
	b.watches.run = run
	r := b.newReads(run, scope(owners))
	r.defining = r.add(defines)
	r.add(r.inScope)
	for _, kind := range b.unread {
		run.Excuse(kind)
	}
	b.mu.Unlock()
	reading, stop := context.WithCancel(ctx)
	result, unread := b.follow(reading, r)
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

// follow sends the reads of the run until it has a result.
func (b *barriers) follow(ctx context.Context, r *reads) (barrier.Result, []*graph.Kind) {
	for {
		b.sealAfter(ctx, r)
		b.mu.Lock()
		now := b.clock.Now()
		result, unread := r.run.Result(now)
		requests, next := r.run.Next(now)
		b.mu.Unlock()
		if result != barrier.Running {
			return result, unread
		}
		for kind, request := range requests {
			r.running.Start(func() { r.send(ctx, kind, request) })
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = b.clock.After(next.Sub(now))
		}
		select {
		case <-ctx.Done():
			return barrier.Running, nil
		case <-b.watches.restored:
			return barrier.Running, nil
		case <-b.watches.awaited:
		case <-timer:
		}
	}
}

// sealAfter adds the kinds that are new once the definitions are seen, or proved unreadable. The run goes on
// looking for them as long as some may be unknown.
func (b *barriers) sealAfter(ctx context.Context, r *reads) {
	b.mu.Lock()
	complete, late := r.run.IsComplete(), r.run.IsLate(b.clock.Now())
	b.mu.Unlock()
	if complete || b.clock.Now().Before(r.sealable) {
		return
	}
	seen, ready := r.sawDefinitions(late)
	if !ready {
		return
	}
	err := b.discovery.refreshKinds(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Kinds cannot be discovered for a barrier")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		r.run.Undiscovered()
	}
	// A kind that is missing here is not read. Its objects would be overlooked as dependents: with the policy Orphan
	// they would be deleted later as garbage. So a definition that was not seen, or a group that nobody can list, delays
	// the barrier.
	complete = seen && err == nil && len(b.discovery.hidden) == 0
	if !complete {
		r.sealable = b.clock.Now().Add(barrier.RetryTime)
		r.running.Start(func() { r.wakeAfter(ctx, barrier.RetryTime) })
	}
	if complete || late || err == nil && b.hiddenExcused {
		r.add(r.inScope)
		r.run.Seal(complete)
	}
}

// dueForUnread returns when unread kinds are to be read again; nil, which is never, if there are none.
func (b *barriers) dueForUnread() <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.unread) == 0 {
		return nil
	}
	return b.clock.After(unreadRecheck)
}

// describeUnseen returns the names of what a barrier passed without.
func (b *barriers) describeUnseen(unread []*graph.Kind) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if names := append(namesOf(unread), b.discovery.hidden...); len(names) > 0 {
		return names
	}
	return []string{undiscovered}
}

// unreadOutside returns the kinds that could not be read and that the barrier did not read, because no object
// of theirs can be a dependent. The caller holds the lock.
func (b *barriers) unreadOutside(r *reads) []*graph.Kind {
	return slices.DeleteFunc(slices.Clone(b.unread), func(kind *graph.Kind) bool {
		m := b.watches.monitors[kind.GroupKind()]
		return r.inScope(kind) || defines(kind) || m == nil || m.kind != kind
	})
}

// unreadNames returns the names of what the last barrier passed without. The caller holds the lock.
func (b *barriers) unreadNames() []string { return append(namesOf(b.unread), b.discovery.hidden...) }

// unreadKinds returns the kinds that have no first list, that the last barrier passed without, and the groups
// whose kinds are not known.
func (b *barriers) unreadKinds() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	kinds := slices.Clone(b.unread)
	for _, m := range b.watches.monitors {
		if !m.listed && !slices.Contains(kinds, m.kind) {
			kinds = append(kinds, m.kind)
		}
	}
	return append(namesOf(kinds), b.discovery.hidden...)
}
