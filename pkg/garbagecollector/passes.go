package garbagecollector

import (
	"context"
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// orphanRetry is when an orphaning owner has another barrier begin, after one that could not read
// every kind.
const orphanRetry = 5 * time.Second

// deletion is a deletion that a barrier serves.
type deletion struct {
	epoch     uint64
	namespace string
	// since is when the first barrier for the deletion began.
	since time.Time
}

// passes record which deletions have passed a barrier.
type passes struct {
	*sharedGraph
	recorder record.EventRecorder
	// enqueueAfter has a worker judge the object after the time.
	enqueueAfter func(types.UID, time.Duration)
	// cycles wakes the search for cycles.
	cycles signal
	// orphanUnreadableAfter is how long a deletion with the policy Orphan waits for kinds that cannot be read; 0 for ever.
	orphanUnreadableAfter time.Duration
	// unreadSince are, for orphaning owners that wait for such kinds, their deletions with the time of the first
	// barrier. The mutex of the graph guards it.
	unreadSince map[types.UID]deletion
}

// pass records that the graph has every kind as of a read that began after the deletions.
func (p *passes) pass(owners map[types.UID]deletion) {
	now := p.clock.Now()
	p.change(func(g *graph.Graph) {
		for uid, d := range owners {
			g.Passed(uid, d.epoch, now)
		}
	})
	p.cycles.wake()
}

// passWithout records that a barrier passed without the kinds. Owners that wait for them have another
// barrier begin later.
func (p *passes) passWithout(ctx context.Context, owners map[types.UID]deletion, unread []string) {
	now := p.clock.Now()
	var waiting []types.UID
	var released []graph.WaitingOwner
	p.change(func(g *graph.Graph) {
		maps.DeleteFunc(p.unreadSince, func(uid types.UID, _ deletion) bool { return !waits(g, uid) })
		for uid, d := range owners {
			owner, found := g.WaitingOwner(uid)
			switch {
			// A kind that cannot be read may have dependents of the owner. Once the finalizer orphan is gone they would be
			// garbage, and be deleted although the policy is to keep them. A dependent deleted in the foreground only goes
			// later.
			case found && !passesWithout(owner.Orphaning, now.Sub(d.since), p.orphanUnreadableAfter):
				p.unreadSince[uid] = d
				waiting = append(waiting, uid)
				continue
			case found:
				released = append(released, owner)
			}
			g.Passed(uid, d.epoch, now)
		}
	})
	klog.FromContext(ctx).Info("Kinds cannot be read",
		"resources", unread, "deletionsWithoutThem", len(released), "waiting", len(waiting))
	for _, uid := range waiting {
		p.enqueueAfter(uid, orphanRetry)
	}
	for _, owner := range released[:min(len(released), maxEvents)] {
		message := describeUnread(owner.Orphaning, unread)
		p.recorder.Event(referenceTo(owner.Object), v1.EventTypeWarning, blocker.UnreadEvent, message)
	}
	p.cycles.wake()
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
func (p *passes) beganWaiting(uid types.UID, epoch uint64) time.Time {
	if d, found := p.unreadSince[uid]; found && d.epoch == epoch {
		return d.since
	}
	return p.clock.Now()
}

// describeUnread says what becomes of dependents that an owner did not wait for.
func describeUnread(orphaning bool, unread []string) string {
	kinds := strings.Join(unread, ", ")
	if orphaning {
		return "Dependents of these kinds may be deleted, although the policy is Orphan, " +
			"because the kinds cannot be read: " + kinds
	}
	return "Dependents of these kinds are not waited for, because the kinds cannot be read: " + kinds
}
