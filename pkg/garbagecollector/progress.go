package garbagecollector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// progressInterval is the time until the first event about a waiting owner, and between
	// two of them.
	progressInterval = 30 * time.Second
	progressTick     = 5 * time.Second
)

// progress is what was told about a waiting owner.
type progress struct {
	first, sent time.Time
}

// progressReports are the events and counts about deletions that wait.
type progressReports struct {
	*sharedGraph
	barriers *barriers
	recorder record.EventRecorder
	// told is what was told about waiting owners. Only the loop of the reports uses it.
	told map[types.UID]*progress
}

// run tells what waiting owners wait for, until the context ends.
func (p *progressReports) run(ctx context.Context) {
	ticker := p.clock.NewTicker(progressTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			p.sendProgress()
		}
	}
}

// sendProgress sends the events that are due: those about owners without an event first, then the least recent
// ones. Owners whose owner waits itself get none: the events about that owner name them.
func (p *progressReports) sendProgress() {
	now := p.clock.Now()
	p.mu.Lock()
	owners, unread := p.graph.Waiting(), p.barriers.unreadNames()
	p.mu.Unlock()
	due := p.due(owners, now)
	for _, owner := range due[:min(len(due), maxEvents)] {
		p.told[owner.UID].sent = now
		p.sendWaiting(owner.UID, unread)
	}
}

// due returns the owners about which an event is due, in the order of the events, and forgets others than these
// owners.
func (p *progressReports) due(owners []graph.WaitingOwner, now time.Time) []graph.WaitingOwner {
	told := make(map[types.UID]*progress, len(owners))
	var due []graph.WaitingOwner
	for _, owner := range owners {
		last := p.told[owner.UID]
		if last == nil {
			last = &progress{first: now}
		}
		told[owner.UID] = last
		if owner.Top && !now.Before(later(last.first, last.sent).Add(progressInterval)) {
			due = append(due, owner)
		}
	}
	p.told = told
	slices.SortStableFunc(due, func(a, b graph.WaitingOwner) int {
		return cmp.Or(told[a.UID].sent.Compare(told[b.UID].sent), a.Deleted.Compare(b.Deleted))
	})
	return due
}

// sendWaiting sends the event about one owner.
func (p *progressReports) sendWaiting(uid types.UID, unread []string) {
	p.mu.Lock()
	owner, found := p.graph.WaitingOwner(uid)
	p.mu.Unlock()
	if found {
		p.recorder.Event(referenceTo(owner.Object), v1.EventTypeNormal, blocker.EventName, describe(owner, unread))
	}
}

// describe says what an owner waits for.
func describe(owner graph.WaitingOwner, unread []string) string {
	purpose := "to be deleted"
	if owner.Orphaning {
		purpose = "to lose their owner reference"
	}
	switch {
	case owner.Remaining > 0:
		names := make([]string, len(owner.Examples))
		for i, example := range owner.Examples {
			names[i] = example.Kind.Kind + " " + example.Name
		}
		slices.Sort(names)
		more := ""
		if owner.Remaining > len(names) {
			more = ", ..."
		}
		return fmt.Sprintf("Waiting for %d dependents %s: %s%s", owner.Remaining, purpose, strings.Join(names, ", "), more)
	case !owner.Passed && len(unread) > 0:
		return "Waiting until the API server lists these kinds, which may have dependents: " + strings.Join(unread, ", ")
	case !owner.Passed:
		return "Waiting until every kind is read: it may have dependents"
	}
	return "Waiting for the removal of the finalizer"
}

// counts returns the number of waiting owners, and the age of the oldest, by policy.
func (p *progressReports) counts() (count map[string]int, oldest map[string]time.Duration) {
	now := p.clock.Now()
	p.mu.Lock()
	owners := p.graph.Waiting()
	p.mu.Unlock()
	count, oldest = map[string]int{"foreground": 0, "orphan": 0}, map[string]time.Duration{"foreground": 0, "orphan": 0}
	for _, owner := range owners {
		policy := "foreground"
		if owner.Orphaning {
			policy = "orphan"
		}
		count[policy]++
		if !owner.Deleted.IsZero() {
			oldest[policy] = max(oldest[policy], now.Sub(owner.Deleted))
		}
	}
	return count, oldest
}
