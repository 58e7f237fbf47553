package journal

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

// Watch undoes changes of other writers to the active Leases, and passes on the
// unresolved entries that the administrator wants finished, until the context ends.
func (s *Store) Watch(ctx context.Context, approved func(journal.Entry)) error {
	s.mu.Lock()
	s.approved = approved
	s.mu.Unlock()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Journal.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = journal.KindLabel }))
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.saw(object, false, false) },
		UpdateFunc: func(_, object any) { s.saw(object, false, false) },
		DeleteFunc: func(object any) {
			if stale, is := object.(cache.DeletedFinalStateUnknown); is {
				s.saw(stale.Obj, true, true)
				return
			}
			s.saw(object, true, false)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the leases of the journal: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// saw takes note of a change; unsure, if the version is not that of the deletion.
func (s *Store) saw(object any, deleted, unsure bool) {
	changed, is := object.(*coordinationv1.Lease)
	if !is {
		return
	}
	if kind, _, ours := s.Journal.KindOf(changed); ours && kind == journal.KindUnresolved {
		if unsure { // it may be there again
			changed = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: changed.Name}}
		}
		s.sawUnresolved(changed, deleted)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if !l.inherited && changed.Name == s.Journal.LeaseName(journal.KindActive, l.number) {
			s.sawActive(l, changed, deleted, unsure)
		}
	}
}

// sawActive has a Lease written again that another writer has changed. While a write
// is under way, nothing is concluded before its end.
func (s *Store) sawActive(l *lease, changed *coordinationv1.Lease, deleted, unsure bool) {
	switch {
	case !unsure && older(changed.ResourceVersion, l.version):
	case l.writing:
		l.seen, l.unsure = changed.ResourceVersion, l.unsure || unsure
	case l.wanted != l.committed: // the next write meets the change
	case deleted || !s.asWritten(l, changed):
		s.repair(l)
	}
}

// asWritten reports whether a Lease is as this process wrote it.
func (s *Store) asWritten(l *lease, changed *coordinationv1.Lease) bool {
	_, _, ours := s.Journal.KindOf(changed)
	custody, current := custodyOf(changed), s.Custody
	if current.LeaderLease == "" {
		custody.Written, current.Written = 0, 0
	}
	return ours && changed.DeletionTimestamp == nil && journal.HolderOf(changed) == s.Holder &&
		custody == current && maps.Equal(journal.Encoded(changed), l.entries)
}

// steady is how long a Lease must be unchanged for the next repair to be immediate.
const steady = time.Minute

// repair has the Lease written once more, with backoff against a writer that keeps
// changing it.
func (s *Store) repair(l *lease) {
	now := time.Now()
	if now.Sub(l.repaired) > steady {
		l.repairs = 0
	}
	due := now
	if l.repairs > 0 {
		due = now.Add(min(firstRetry<<min(l.repairs, 10), lastRetry))
	}
	l.repairs++
	l.repaired = now
	l.wanted++
	s.plan(l, due)
}

// older reports whether version a precedes version b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
