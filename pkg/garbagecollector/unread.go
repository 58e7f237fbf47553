package garbagecollector

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// orphanRetry is when an orphaning owner has another barrier begin, after one that could not read
// every kind.
const orphanRetry = 5 * time.Second

// unreadRecheck is the time until kinds that could not be read are read again, if no deletion needs it earlier.
const unreadRecheck = time.Minute

// dueForUnread returns when unread kinds are to be read again; nil, which is never, if there are none.
func (c *Collector) dueForUnread() <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unread) == 0 {
		return nil
	}
	return c.Clock.After(unreadRecheck)
}

// pass records the result of a barrier.
func (c *Collector) pass(ctx context.Context, owners map[types.UID]deletion, result barrier.Result, unread []*graph.Kind) {
	if result == barrier.PassedWithout {
		c.passWithout(ctx, owners, c.describeUnseen(unread))
	} else {
		now := c.Clock.Now()
		c.change(func(g *graph.Graph) {
			for uid, d := range owners {
				g.Passed(uid, d.epoch, now)
			}
		})
	}
	c.cyclic.wake()
}

// undiscovered stands for kinds that nobody can name.
const undiscovered = "kinds that cannot be discovered"

// describeUnseen returns the names of what a barrier passed without.
func (c *Collector) describeUnseen(unread []*graph.Kind) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if names := append(namesOf(unread), c.discovery.hidden...); len(names) > 0 {
		return names
	}
	return []string{undiscovered}
}

// unreadOutside returns the kinds that could not be read and that the barrier did not read, because no object
// of theirs can be a dependent. The caller holds the lock.
func (c *Collector) unreadOutside(r *reads) []*graph.Kind {
	return slices.DeleteFunc(slices.Clone(c.unread), func(kind *graph.Kind) bool {
		m := c.monitors[kind.GroupKind()]
		return r.inScope(kind) || defines(kind) || m == nil || m.kind != kind
	})
}

// passWithout records that a barrier passed without the kinds. Owners that wait for them have another
// barrier begin later.
func (c *Collector) passWithout(ctx context.Context, owners map[types.UID]deletion, unread []string) {
	now := c.Clock.Now()
	var waiting []types.UID
	var released []graph.WaitingOwner
	c.change(func(g *graph.Graph) {
		maps.DeleteFunc(c.unreadSince, func(uid types.UID, _ deletion) bool { return !waits(g, uid) })
		for uid, d := range owners {
			owner, found := g.WaitingOwner(uid)
			switch {
			case found && !passesWithout(owner.Orphaning, now.Sub(d.since), c.OrphanUnreadableAfter):
				c.unreadSince[uid] = d
				waiting = append(waiting, uid)
				continue
			case found:
				released = append(released, owner)
			}
			g.Passed(uid, d.epoch, now)
		}
	})
	klog.FromContext(ctx).Info("Kinds cannot be read", "resources", unread, "deletionsWithoutThem", len(released), "waiting", len(waiting))
	for _, uid := range waiting {
		c.queue.AddAfter(uid, orphanRetry)
	}
	for _, owner := range released[:min(len(released), maxEvents)] {
		c.Recorder.Event(referenceTo(owner.Object), v1.EventTypeWarning, blocker.UnreadEvent, describeUnread(owner.Orphaning, unread))
	}
}

// waits reports whether the deletion of the object waits for its dependents.
func waits(g *graph.Graph, uid types.UID) bool {
	_, found := g.WaitingOwner(uid)
	return found
}

// passesWithout reports whether a deletion no longer waits for kinds that cannot be read. Orphaning ones wait
// until the limit, for ever if that is 0.
func passesWithout(orphaning bool, waited, limit time.Duration) bool {
	return !orphaning || limit > 0 && waited >= limit
}

// beganWaiting returns when the first barrier for the deletion began: now, if none did. Another policy is another
// deletion. The caller holds the lock.
func (c *Collector) beganWaiting(uid types.UID, epoch uint64) time.Time {
	if d, found := c.unreadSince[uid]; found && d.epoch == epoch {
		return d.since
	}
	return c.Clock.Now()
}

// describeUnread says what becomes of dependents that an owner did not wait for.
func describeUnread(orphaning bool, unread []string) string {
	kinds := strings.Join(unread, ", ")
	if orphaning {
		return "Dependents of these kinds may be deleted, although the policy is Orphan, because the kinds cannot be read: " + kinds
	}
	return "Dependents of these kinds are not waited for, because the kinds cannot be read: " + kinds
}

// unreadKinds returns the kinds that have no first list, that the last barrier passed without, and the groups
// whose kinds are not known.
func (c *Collector) unreadKinds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := slices.Clone(c.unread)
	for _, m := range c.monitors {
		if !m.listed && !slices.Contains(kinds, m.kind) {
			kinds = append(kinds, m.kind)
		}
	}
	return append(namesOf(kinds), c.discovery.hidden...)
}
