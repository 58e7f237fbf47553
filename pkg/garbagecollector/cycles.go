package garbagecollector

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// cyclePause is the least time between two searches for cycles, and cycleShare how many
	// times longer than a search the pause after the search is: the search takes time linear in
	// the number of waiting owners, and must not slow their deletion down.
	cyclePause = 250 * time.Millisecond
	cycleShare = 10
)

// cycles releases owners that wait for each other. It has no mutex of its own.
type cycles struct {
	*sharedGraph
	live     *liveReads
	writer   *writer
	barriers *barriers
	recorder record.EventRecorder
	// wanted wakes the search.
	wanted signal
}

// run releases owners that wait for each other, until the context ends.
func (c *cycles) run(ctx context.Context) {
	delays := newCycleDelays()
	for {
		var retry <-chan time.Time
		if next, failed := delays.next(); failed {
			retry = c.clock.After(next.Sub(c.clock.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wanted:
		case <-retry:
		}
		pause := c.releaseFound(ctx, delays)
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(pause):
		}
	}
}

// cycleDelays delays components whose release failed.
type cycleDelays struct {
	limiter workqueue.TypedRateLimiter[types.UID]
	until   map[types.UID]time.Time
}

func newCycleDelays() *cycleDelays {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](cyclePause, maxPause)
	return &cycleDelays{limiter, map[types.UID]time.Time{}}
}

// record records the result of a release.
func (d *cycleDelays) record(component types.UID, err error, now time.Time) {
	if err == nil {
		d.limiter.Forget(component)
		delete(d.until, component)
		return
	}
	d.until[component] = now.Add(d.limiter.When(component))
}

// next returns when the next component is due again, false if none is delayed.
func (d *cycleDelays) next() (next time.Time, failed bool) {
	for _, until := range d.until {
		if !failed || until.Before(next) {
			next, failed = until, true
		}
	}
	return next, failed
}

// forgetOthers forgets the components that no longer exist.
func (d *cycleDelays) forgetOthers(exists map[types.UID]bool) {
	for component := range d.until {
		if !exists[component] {
			d.record(component, nil, time.Time{})
		}
	}
}

// releaseFound searches for cycles once, and returns the pause until the next search.
func (c *cycles) releaseFound(ctx context.Context, delays *cycleDelays) (pause time.Duration) {
	began := c.clock.Now()
	c.mu.Lock()
	components := c.graph.Components()
	c.mu.Unlock()
	pause = max(cyclePause, cycleShare*c.clock.Since(began))
	exists := map[types.UID]bool{}
	for _, component := range components {
		name := component.Members[0].UID
		exists[name] = true
		if c.clock.Now().Before(delays.until[name]) {
			continue
		}
		err := c.releaseComponent(ctx, component)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Owners that wait for each other are retried", "err", err)
		}
		delays.record(name, err, c.clock.Now())
	}
	delays.forgetOthers(exists)
	return pause
}

func stateOf(component graph.Component) garbage.ComponentState {
	return garbage.ComponentState{BlockedOutside: component.BlockedOutside, Seen: component.Seen}
}

// releaseComponent carries out the decisions on one component.
func (c *cycles) releaseComponent(ctx context.Context, component graph.Component) error {
	state := stateOf(component)
	for {
		switch action := garbage.DecideComponent(state); action {
		case garbage.AwaitOutside:
			return nil
		case garbage.AwaitMembers:
			c.barriers.await(unseen(component))
			return nil
		case garbage.ReadMembers:
			changed, err := c.readMembers(ctx, component)
			if err != nil {
				return err
			}
			state.Read, state.Changed = true, changed
		case garbage.Recompute:
			c.wanted.wake()
			return nil
		case garbage.ReleaseMembers:
			return c.releaseMembers(ctx, component)
		}
	}
}

func unseen(component graph.Component) []types.UID {
	var uids []types.UID
	for _, member := range component.Members {
		if !member.Passed {
			uids = append(uids, member.UID)
		}
	}
	return uids
}

// readMembers reads every member live, and reports whether one has changed: a member may have lost the reference that
// made the cycle, or have got an owner that lives, and would be released before its dependents.
func (c *cycles) readMembers(ctx context.Context, component graph.Component) (changed bool, err error) {
	for _, member := range component.Members {
		unchanged, err := c.live.isUnchanged(ctx, member.Object)
		if err != nil {
			return false, err
		}
		changed = changed || !unchanged
	}
	return changed, nil
}

// isBlockedByOther reports whether a dependent that is no member blocks the owner.
func (c *cycles) isBlockedByOther(owner types.UID, members map[types.UID]bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.graph.IsBlockedByOther(owner, members)
}

// releaseMembers removes the finalizer of every member. The first removal may delete a member,
// so that the others wait for nothing: a crash in between leaves no cycle.
func (c *cycles) releaseMembers(ctx context.Context, component graph.Component) error {
	names := make([]string, 0, len(component.Members))
	for _, member := range component.Members {
		names = append(names, member.Kind.Kind+" "+member.Name)
	}
	cycle := strings.Join(names[:min(len(names), maxNames)], ", ")
	klog.FromContext(ctx).Info("Owners wait for each other and are released", "members", cycle, "count", len(names))
	members := component.UIDs()
	for i, member := range component.Members {
		judgement := graph.Judgement{Object: member.Object}
		operations := removeFinalizer(member.Object, member.ForegroundIndex, metav1.FinalizerDeleteDependents)
		// A dependent that came while the patch was delayed blocks the member: it must go before the member does.
		still := func() bool { return !c.isBlockedByOther(member.UID, members) }
		next, err := c.writer.patch(ctx, judgement, &attempt{}, removal{"release_cycle", operations, still})
		if err != nil {
			return err
		}
		if next != done {
			c.wanted.wake()
			return nil
		}
		if i < maxEvents && !c.writer.sender.dryRun {
			c.recorder.Eventf(referenceTo(member.Object), v1.EventTypeWarning, blocker.CycleEvent,
				"Released from a cycle of %d owners that block each other: %s", len(names), cycle)
		}
	}
	return nil
}
