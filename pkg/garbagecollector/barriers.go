package garbagecollector

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// maxReads bounds the reads of one barrier that are in flight.
const maxReads = 10

// await has a barrier begin for the deletions.
func (c *Collector) await(deletions []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uid := range deletions {
		c.pending[uid] = struct{}{}
	}
	wake(c.awaited)
}

// runBarriers runs barriers, one at a time, until the context ends.
func (c *Collector) runBarriers(ctx context.Context) {
	for ctx.Err() == nil {
		if owners := c.takePending(); len(owners) > 0 {
			c.runBarrier(ctx, owners)
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.awaited:
		}
	}
}

// takePending returns the deletions that a barrier is to serve, with their epochs.
func (c *Collector) takePending() map[types.UID]deletion {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := map[types.UID]deletion{}
	for uid := range c.pending {
		if epoch, namespace, found := c.graph.Epoch(uid); found {
			owners[uid] = deletion{epoch, namespace}
		}
	}
	clear(c.pending)
	return owners
}

// deletion is a deletion that a barrier serves.
type deletion struct {
	epoch     uint64
	namespace string
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

// runBarrier runs one barrier. The definitions of kinds come first: they tell which kinds
// there are.
func (c *Collector) runBarrier(ctx context.Context, owners map[types.UID]deletion) {
	began := c.Clock.Now()
	run := barrier.Begin[*graph.Kind](began, c.UnreadableAfter)
	c.mu.Lock()
	c.run = run
	defining := c.addKinds(run, func(k *graph.Kind) bool { return k.GroupKind() == definitionKind || k.GroupKind() == serviceKind })
	c.mu.Unlock()
	reading, stop := context.WithCancel(ctx)
	r := &reads{Collector: c, run: run, namespace: scope(owners), slots: make(chan struct{}, maxReads)}
	result, unread := r.follow(reading, defining)
	stop()
	r.running.Wait()
	c.mu.Lock()
	c.run = nil
	c.unread = unread
	c.mu.Unlock()
	if ctx.Err() != nil {
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
	return added
}

// pass records the result of a barrier. Orphaning owners wait for every kind.
func (c *Collector) pass(ctx context.Context, owners map[types.UID]deletion, result barrier.Result, unread []*graph.Kind) {
	names := namesOf(unread)
	if result == barrier.PassedWithout {
		klog.FromContext(ctx).Info("Kinds cannot be read; foreground deletions do not wait for unknown dependents of these kinds", "resources", names, "deletions", len(owners))
	}
	var waiting []types.UID
	var released []graph.Object
	c.change(func(g *graph.Graph) {
		for uid, d := range owners {
			owner, found := g.WaitingOwner(uid)
			if result == barrier.PassedWithout && found {
				if owner.Orphaning {
					waiting = append(waiting, uid)
					continue
				}
				released = append(released, owner.Object)
			}
			g.Passed(uid, d.epoch)
		}
	})
	wake(c.cyclic)
	if len(waiting) > 0 {
		c.await(waiting)
	}
	for _, owner := range released[:min(len(released), maxEvents)] {
		c.Recorder.Eventf(referenceTo(owner), v1.EventTypeWarning, "DependentsUnread", "Dependents of these kinds are not waited for, because the kinds cannot be read: %s", strings.Join(names, ", "))
	}
}

func namesOf(kinds []*graph.Kind) []string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.GroupResource().String()
	}
	slices.Sort(names)
	return names
}

// reads are the reads of one barrier.
type reads struct {
	*Collector
	run       *barrier.Run[*graph.Kind]
	namespace string
	slots     chan struct{}
	running   wait.Group
	sealed    bool
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
		case <-r.awaited:
		case <-timer:
		}
	}
}

// sealAfter adds all kinds once the definitions are seen, or proved unreadable.
func (r *reads) sealAfter(ctx context.Context, defining []*graph.Kind) {
	if r.sealed {
		return
	}
	r.mu.Lock()
	late := r.Clock.Since(r.run.Begun()) >= r.UnreadableAfter
	seen := !slices.ContainsFunc(defining, func(kind *graph.Kind) bool { return !r.run.Saw(kind) })
	r.mu.Unlock()
	if !seen && !late {
		return
	}
	if err := r.refreshKinds(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Kinds cannot be discovered for a barrier")
		if !late {
			r.running.Start(func() { r.wakeAfter(ctx, barrier.RetryTime) })
			return
		}
	}
	r.sealed = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addKinds(r.run, func(kind *graph.Kind) bool { return r.namespace == "" || kind.Namespaced })
	r.run.Seal()
}

// wakeAfter continues the run after the time.
func (r *reads) wakeAfter(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-r.Clock.After(after):
		wake(r.awaited)
	}
}

// send sends one read, and records its result.
func (r *reads) send(ctx context.Context, kind *graph.Kind, request barrier.Request) {
	select {
	case <-ctx.Done():
		return
	case r.slots <- struct{}{}:
	}
	defer func() { <-r.slots }()
	r.metrics.reads.WithLabelValues(strings.ToLower(request.String())).Inc()
	var err error
	if request == barrier.Probe {
		err = r.probe(ctx, kind)
	} else {
		err = r.list(ctx, kind)
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("A kind cannot be read for a barrier", "resource", kind.GroupResource(), "err", err)
		r.mu.Lock()
		r.run.Failed(kind, r.Clock.Now())
		r.mu.Unlock()
	}
	wake(r.awaited)
}

// namespaceOf returns the namespace in which the kind is read.
func (r *reads) namespaceOf(kind *graph.Kind) string {
	if kind.Namespaced {
		return r.namespace
	}
	return ""
}
