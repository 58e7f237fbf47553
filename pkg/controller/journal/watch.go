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

// Watch puts right what somebody else does to the active Leases, and passes on the
// unresolved entries that the administrator wants finished, until the context ends.
func (s *Store) Watch(ctx context.Context, approved func(journal.Entry)) error {
	s.mu.Lock()
	s.approved = approved
	s.mu.Unlock()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Journal.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = journal.KindLabel }))
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.saw(object, false) },
		UpdateFunc: func(_, object any) { s.saw(object, false) },
		DeleteFunc: func(object any) {
			if stale, is := object.(cache.DeletedFinalStateUnknown); is {
				object = stale.Obj
			}
			s.saw(object, true)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the leases of the journal: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

func (s *Store) saw(object any, deleted bool) {
	changed, is := object.(*coordinationv1.Lease)
	if !is {
		return
	}
	kind, number, ours := s.Journal.KindOf(changed)
	switch {
	case !ours:
	case kind == journal.Apart && deleted:
		s.sawApart(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: changed.Name}})
	case kind == journal.Apart:
		s.sawApart(changed)
	default:
		s.sawActive(changed, number, deleted)
	}
}

// sawActive has a Lease written again that somebody else has changed. While a write
// is under way nothing is concluded: it meets the change by itself.
func (s *Store) sawActive(changed *coordinationv1.Lease, number int, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.number != number || l.writing || l.wanted != l.committed || older(changed.ResourceVersion, l.version) {
			continue
		}
		if deleted || journal.HolderOf(changed) != s.Holder || !maps.Equal(journal.Encoded(changed), l.entries) {
			l.wanted++
			s.plan(l, time.Now())
		}
	}
}

// older reports whether version a precedes version b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
