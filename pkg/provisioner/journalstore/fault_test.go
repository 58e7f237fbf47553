package journalstore_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// takeOverLease writes another process's holder into the Lease.
func takeOverLease(api *server, name string) {
	api.edit(name, func(lease *coordinationv1.Lease) { *lease.Spec.HolderIdentity = otherPod })
}

func TestLeaseDeletedByItsWriteIsCreatedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		must(t, store.Write(t.Context(), newEntry(1)))
		name := theJournal.LeaseName(journal.KindActive, 0)
		now := metav1.Now()
		api.edit(name, func(lease *coordinationv1.Lease) {
			lease.DeletionTimestamp, lease.Finalizers = &now, []string{"foregroundDeletion"}
		})
		// The API server does the same when a write removes the last finalizer.
		api.mu.Lock()
		kept := api.leases[name].DeletionTimestamp
		api.mu.Unlock()
		api.before = func(verb string, lease *coordinationv1.Lease) error {
			if verb == "update" && kept != nil {
				lease.DeletionTimestamp = kept
			}
			return nil
		}
		api.after = func(verb string, _ *coordinationv1.Lease) error {
			if verb == "update" && kept != nil {
				kept = nil
				api.remove(name)
			}
			return nil
		}
		must(t, store.Write(t.Context(), newEntry(2)))
		if got := len(api.entries(journal.KindActive)); got != 2 {
			t.Errorf("%d entries are durable, want 2", got)
		}
	})
}

func TestEntryRemovedByAdmissionIsNotDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		api.before = func(_ string, lease *coordinationv1.Lease) error {
			maps.DeleteFunc(lease.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, journal.EntryPrefix) })
			return nil
		}
		if err := store.Write(t.Context(), newEntry(1)); err == nil {
			t.Error("Write succeeded, but the entry is not stored")
		}
		api.before = nil
		must(t, store.Write(t.Context(), newEntry(1)))
	})
}

func TestDeletedOrEditedLeaseIsRewritten(t *testing.T) {
	name := theJournal.LeaseName(journal.KindActive, 0)
	for what, change := range map[string]func(*server){
		"deleted": func(api *server) { api.remove(name) },
		"entry removed": func(api *server) {
			api.edit(name, func(l *coordinationv1.Lease) { delete(l.Annotations, journal.EntryPrefix+string(newEntry(1).UID)) })
		},
		"holder removed":      func(api *server) { api.edit(name, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }) },
		"annotations removed": func(api *server) { api.edit(name, func(l *coordinationv1.Lease) { l.Annotations = nil }) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				store := New(config(api, pod, 1))
				run(t, store)
				must(t, store.Write(t.Context(), newEntry(1)))
				change(api)
				must(t, store.Write(t.Context(), newEntry(2)))
				if got := len(api.entries(journal.KindActive)); got != 2 {
					t.Errorf("%d entries, want 2", got)
				}
			})
		})
	}
}

func TestWriteWithoutNamespaceFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		api.before = func(verb string, _ *coordinationv1.Lease) error {
			if verb == "list" {
				return nil
			}
			return apierrors.NewNotFound(coordinationv1.Resource("namespaces"), "ns")
		}
		for what, err := range map[string]error{
			"Write":            store.Write(contextWithTimeout(t, time.Hour), newEntry(1)),
			"MoveToUnresolved": store.MoveToUnresolved(contextWithTimeout(t, time.Hour), newEntry(1), "x"),
		} {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v, want NotFound", what, err)
			}
		}
	})
}

func TestLostJournalFailsAllCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		lost := 0
		settings := config(api, pod, 1)
		var store *Store
		settings.Lost = func(err error) {
			lost++
			store.Flush(t.Context()) // must not wait for itself
			if !errors.Is(err, ErrLost) {
				t.Errorf("lost: %v", err)
			}
		}
		store = New(settings)
		run(t, store)
		for number := range 10 { // more than one Lease
			must(t, store.Write(t.Context(), largeEntry(number)))
		}
		if len(api.names()) < 2 {
			t.Fatalf("leases: %v", api.names())
		}
		takeOverLease(api, theJournal.LeaseName(journal.KindActive, 0))
		for i, err := range writeAll(t, store, withParameter(newEntry(0), "new"), withParameter(newEntry(9), "new")) {
			if i == 0 && !errors.Is(err, ErrLost) {
				t.Errorf("entry %d: %v, want ErrLost", i, err)
			}
		}
		for _, err := range []error{
			store.Write(contextWithTimeout(t, time.Second), newEntry(20)),
			store.RemoveNow(contextWithTimeout(t, time.Second), newEntry(8).UID),
			store.MoveToUnresolved(contextWithTimeout(t, time.Second), newEntry(7), "x"),
		} {
			if !errors.Is(err, ErrLost) {
				t.Errorf("error = %v, want ErrLost", err)
			}
		}
		synctest.Wait() // the calls return while Lost is being called
		if lost != 1 {
			t.Errorf("Lost was called %d times", lost)
		}
		expectNoMoreWrites(t, api, store)
	})
}

func expectNoMoreWrites(t *testing.T, api *server, store *Store) {
	t.Helper()
	writes, _ := api.count()
	store.Flush(t.Context())
	<-time.After(time.Hour)
	if after, _ := api.count(); after != writes {
		t.Error("a lost journal was written")
	}
}

func TestLostJournalFailsWritesOfOtherLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		settings := config(api, pod, 1)
		settings.Interval = 10 * time.Second
		store := New(settings)
		run(t, store)
		for number := range 10 {
			must(t, store.Write(t.Context(), largeEntry(number)))
		}
		takeOverLease(api, theJournal.LeaseName(journal.KindActive, 0))
		takeOverLease(api, theJournal.LeaseName(journal.KindActive, 1))
		errs := make(chan error, 2)
		for _, number := range []int{0, 9} {
			go func() { errs <- store.Write(contextWithTimeout(t, time.Hour), withParameter(newEntry(number), "new")) }()
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, ErrLost) {
				t.Errorf("error = %v, want ErrLost", err)
			}
		}
	})
}
