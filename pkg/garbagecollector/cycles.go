package garbagecollector

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// releaseCycles releases owners that wait for each other, until the context ends.
func (c *Collector) releaseCycles(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.cyclic:
		}
		pause := c.releaseFound(ctx)
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(pause):
		}
	}
}

// releaseFound searches for cycles once, and returns the pause until the next search.
func (c *Collector) releaseFound(ctx context.Context) (pause time.Duration) {
	began := c.Clock.Now()
	c.mu.Lock()
	components := c.graph.Components()
	c.mu.Unlock()
	pause = max(cyclePause, cycleShare*c.Clock.Since(began))
	for _, component := range components {
		if err := c.releaseComponent(ctx, component); err != nil {
			klog.FromContext(ctx).V(2).Info("Owners that wait for each other are retried", "err", err)
			wake(c.cyclic)
		}
	}
	return pause
}

func stateOf(component graph.Component) garbage.ComponentState {
	return garbage.ComponentState{BlockedOutside: component.BlockedOutside, Seen: component.Seen}
}

// releaseComponent carries out the decisions on one component.
func (c *Collector) releaseComponent(ctx context.Context, component graph.Component) error {
	state := stateOf(component)
	for {
		switch action := garbage.DecideComponent(state); action {
		case garbage.AwaitOutside:
			return nil
		case garbage.AwaitMembers:
			c.await(unseen(component))
			return nil
		case garbage.ReadMembers:
			changed, err := c.readMembers(ctx, component)
			if err != nil {
				return err
			}
			state.Read, state.Changed = true, changed
		case garbage.Recompute:
			wake(c.cyclic)
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

// readMembers reads every member live, and reports whether one has changed.
func (c *Collector) readMembers(ctx context.Context, component graph.Component) (changed bool, err error) {
	for _, member := range component.Members {
		unchanged, err := c.isUnchanged(ctx, member.Object)
		if err != nil {
			return false, err
		}
		changed = changed || !unchanged
	}
	return changed, nil
}

// releaseMembers removes the finalizer of every member. The first removal may delete a member,
// so that the others wait for nothing: a crash in between leaves no cycle.
func (c *Collector) releaseMembers(ctx context.Context, component graph.Component) error {
	names := make([]string, 0, len(component.Members))
	for _, member := range component.Members {
		names = append(names, member.Kind.Kind+" "+member.Name)
	}
	cycle := strings.Join(names[:min(len(names), maxNames)], ", ")
	klog.FromContext(ctx).Info("Owners wait for each other and are released", "members", cycle, "count", len(names))
	for i, member := range component.Members {
		judgement := graph.Judgement{Object: member.Object}
		next, err := c.patch(ctx, judgement, &turn{}, "release_cycle", removeFinalizer(member.Object, member.ForegroundIndex, metav1.FinalizerDeleteDependents))
		if err != nil {
			return err
		}
		if next == conflict {
			wake(c.cyclic)
		}
		if i < maxEvents && !c.DryRun {
			c.Recorder.Eventf(referenceTo(member.Object), v1.EventTypeWarning, blocker.CycleEvent, "Released from a cycle of %d owners that block each other: %s", len(names), cycle)
		}
	}
	return nil
}
