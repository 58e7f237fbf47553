package journalstore

import (
	"context"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Watch undoes changes of other writers to the active Leases, and calls approved for each
// unresolved entry that the administrator has approved for finishing, until the context ends.
func (s *Store) Watch(ctx context.Context, approved func(journal.Entry)) error {
	s.mu.Lock()
	s.approved = approved
	s.mu.Unlock()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Journal.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = journal.KindLabel }))
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.handleEvent(object, false, false) },
		UpdateFunc: s.handleUpdate,
		DeleteFunc: func(object any) {
			if stale, is := object.(cache.DeletedFinalStateUnknown); is {
				s.handleEvent(stale.Obj, true, true)
				return
			}
			s.handleEvent(object, true, false)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the leases of the journal: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// handleUpdate handles a changed Lease. A watch that goes back has met an API server whose etcd was restored: the
// versions that this process knows are of no use any more.
func (s *Store) handleUpdate(old, now any) {
	before, after := asLease(old), asLease(now)
	if before == nil || after == nil || !isOlder(after.ResourceVersion, before.ResourceVersion) {
		s.handleEvent(now, false, false)
		return
	}
	s.mu.Lock()
	delete(s.unresolved, after.Name)
	s.mu.Unlock()
	if kind, _, ours := s.Journal.KindOf(after); ours && kind == journal.KindUnresolved {
		s.recordUnresolved(after, false)
		return
	}
	s.handleEvent(now, false, true)
}

func asLease(object any) *coordinationv1.Lease {
	lease, _ := object.(*coordinationv1.Lease)
	return lease
}

// handleEvent handles an event of a Lease. Unsure: the object of a deletion may be stale.
func (s *Store) handleEvent(object any, deleted, unsure bool) {
	changed, is := object.(*coordinationv1.Lease)
	if !is {
		return
	}
	if kind, _, ours := s.Journal.KindOf(changed); ours && kind == journal.KindUnresolved {
		if unsure { // a Lease with this name may exist again
			changed = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: changed.Name}}
		}
		s.recordUnresolved(changed, deleted)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if !l.inherited && changed.Name == s.Journal.LeaseName(journal.KindActive, l.number) {
			s.repairIfChanged(l, changed, deleted, unsure)
		}
	}
}

// repairIfChanged schedules a repair after a change by another writer. Events during a write are
// judged after the write.
func (s *Store) repairIfChanged(l *lease, changed *coordinationv1.Lease, deleted, unsure bool) {
	switch {
	case !unsure && isOlder(changed.ResourceVersion, l.version):
	case l.writing:
		l.seen, l.unsure = changed.ResourceVersion, l.unsure || unsure
	case !deleted && s.isAsWritten(l, changed):
	case l.isPending():
		l.changed = true
	default:
		s.scheduleRepair(l)
	}
}

// isAsWritten reports whether the Lease equals this process's last write.
func (s *Store) isAsWritten(l *lease, changed *coordinationv1.Lease) bool {
	_, _, ours := s.Journal.KindOf(changed)
	custody, current := custodyOf(changed), s.Custody
	if current.LeaderLease == "" {
		custody.Written, current.Written = 0, 0
	}
	return ours && changed.DeletionTimestamp == nil && journal.HolderOf(changed) == s.Holder &&
		custody == current && maps.Equal(journal.Encoded(changed), l.durable)
}

// repairMemory is the time without repairs after which the next repair is immediate.
const repairMemory = time.Minute

// scheduleRepair schedules another write of the Lease, with backoff against a writer that
// changes the Lease repeatedly.
func (s *Store) scheduleRepair(l *lease) {
	now := time.Now()
	if now.Sub(l.repaired) > repairMemory {
		l.repairs = 0
	}
	due := now
	if l.repairs > 0 {
		due = now.Add(min(firstRetry<<min(l.repairs, 10), lastRetry))
	}
	l.repairs++
	l.repaired = now
	l.changed = true
	s.schedule(l, due)
}

// isOlder reports whether version a precedes version b.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
