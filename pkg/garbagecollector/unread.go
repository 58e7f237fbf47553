package garbagecollector

import (
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// unreadRecheck is the time until kinds that could not be read are read again, if no deletion needs it earlier.
const unreadRecheck = time.Minute

// dueForUnread returns when unread kinds are to be read again; nil, which is never, if there are none.
func (b *barriers) dueForUnread() <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.unread) == 0 {
		return nil
	}
	return b.clock.After(unreadRecheck)
}

// undiscovered stands for kinds that nobody can name.
const undiscovered = "kinds that cannot be discovered"

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
