package journalstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// after returns a hook that acts on the next write, which is stored and not answered yet.
func after(act func()) func(string, *coordinationv1.Lease) error {
	done := false
	return func(string, *coordinationv1.Lease) error {
		if !done {
			done = true
			act()
		}
		return nil
	}
}

// leasesOf returns the names of the Leases with an entry of the claim.
func (s *server) leasesOf(claim types.UID) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, lease := range s.leases {
		if _, has := lease.Annotations[journal.EntryPrefix+string(claim)]; has {
			names = append(names, lease.Name)
		}
	}
	return names
}

// While the removal of an entry is pending, a new entry of the claim goes to its Lease.
func TestEntryIsWrittenToTheLeaseThatHasTheOldOne(t *testing.T) {
	claim := newEntry(9).UID
	for name, remove := range map[string]func(t *testing.T, api *server, store *Store){
		"another Lease is written": func(t *testing.T, _ *server, store *Store) {
			store.Remove(claim)
			must(t, store.Write(t.Context(), newEntry(0)))
		},
		"removed during a write": func(t *testing.T, api *server, store *Store) {
			api.setHooks(nil, after(func() { store.Remove(claim) }))
			must(t, store.Write(t.Context(), largeEntry(8)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				store := New(config(api, pod, 1))
				run(t, store)
				for number := range 10 {
					must(t, store.Write(t.Context(), largeEntry(number)))
				}
				before := api.leasesOf(claim)
				if slices.Equal(before, api.leasesOf(newEntry(0).UID)) {
					t.Fatal("one Lease has all entries")
				}
				must(t, store.Write(t.Context(), newEntry(0))) // its Lease has space now
				remove(t, api, store)
				must(t, store.Write(t.Context(), newEntry(9)))
				if now := api.leasesOf(claim); !slices.Equal(now, before) {
					t.Errorf("the Leases with the entry are %v, want %v", now, before)
				}
			})
		})
	}
}

func TestRemovalCountsUntilItsOwnLeaseIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 1))
		run(t, store)
		for number := range 10 {
			must(t, store.Write(t.Context(), largeEntry(number)))
		}
		for range 10 { // the other Lease has more changes
			must(t, store.Write(t.Context(), largeEntry(0)))
		}
		store.Remove(newEntry(9).UID)
		must(t, store.Write(t.Context(), largeEntry(0)))
		if _, stored := api.entries(journal.KindActive)[newEntry(9).UID]; !stored || !store.Has(newEntry(9).UID) {
			t.Errorf("stored %v, in the journal %v", stored, store.Has(newEntry(9).UID))
		}
	})
}

func TestRemovalDuringWriteIsNotDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.after = after(func() { store.Remove(newEntry(1).UID) })
		must(t, store.Write(t.Context(), newEntry(2)))
		if !store.Has(newEntry(1).UID) {
			t.Error("the journal no longer has an entry that is stored")
		}
		expectLease(t, api, 1)
	})
}

// The event of a write may arrive before the response.
func TestEventOfOwnWriteIsNotRepaired(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.after = after(func() { <-time.After(time.Second) })
		before, _ := api.count()
		must(t, store.Write(t.Context(), newEntry(2)))
		<-time.After(time.Minute)
		if now, _ := api.count(); now != before+1 {
			t.Errorf("%d writes, want 1", now-before)
		}
	})
}

// The watch missed the deletion of the Lease, and shows only its last known version.
func TestLeaseDeletedUnseenDuringWriteIsRepaired(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.after = after(func() {
			api.mu.Lock()
			delete(api.leases, leaseName)
			for _, w := range api.watches {
				w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
			}
			api.watches = nil
			api.mu.Unlock()
			<-time.After(time.Minute)
		})
		must(t, store.Write(t.Context(), newEntry(2)))
		expectLease(t, api, 2)
	})
}

// TestChangeDuringRefusedWriteIsKept changes an entry while its last change is refused.
func TestChangeDuringRefusedWriteIsKept(t *testing.T) {
	for name, remove := range map[string]bool{"written again": false, "removed": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				store := New(config(api, pod, 1))
				run(t, store)
				must(t, store.Write(t.Context(), withParameter(newEntry(1), "old")))
				api.before, api.latency = refuseLeasesWith("refused"), time.Second
				refused := make(chan error)
				go func() { refused <- store.Write(t.Context(), withParameter(newEntry(1), "refused")) }()
				<-time.After(time.Second / 2)
				if remove {
					store.Remove(newEntry(1).UID)
				} else {
					must(t, store.Write(t.Context(), withParameter(newEntry(1), "new")))
				}
				if err := <-refused; !apierrors.IsInvalid(err) {
					t.Errorf("the refused change: %v", err)
				}
				<-time.After(time.Minute)
				got, has := api.entries(journal.KindActive)[newEntry(1).UID]
				if has == remove || has && parameterOf(got) != "new" {
					t.Errorf("stored: %v, %q", has, parameterOf(got))
				}
			})
		})
	}
}

func TestFailedReadAfterConflictFailsWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.edit(leaseName, func(*coordinationv1.Lease) {})
		failure := apierrors.NewInternalError(errors.New("no quorum"))
		api.before = func(verb string, _ *coordinationv1.Lease) error {
			switch verb {
			case "update":
				return apierrors.NewConflict(leasesResource, leaseName, errors.New("changed"))
			case "get":
				return failure
			}
			return nil
		}
		if err := store.Write(contextWithTimeout(t, time.Minute), newEntry(2)); !errors.Is(err, failure) {
			t.Errorf("error = %v, want that of the read", err)
		}
	})
}

// TestUnreadLeaseIsNotOverwritten: the journal needs a new Lease, and one with the name exists.
func TestUnreadLeaseIsNotOverwritten(t *testing.T) {
	for name, tc := range map[string]struct {
		term      int32
		change    func(*coordinationv1.Lease)
		inherited int
	}{
		"of another owner":                   {5, func(l *coordinationv1.Lease) { l.Annotations[journal.OwnerAnnotation] = "another" }, 0},
		"without a holder":                   {5, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, 1},
		"of an earlier term of this process": {4, func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = pod }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				store := New(config(api, pod, 5))
				run(t, store)
				storeLease(t, api, journal.KindActive, 1, custodyAt(tc.term), newEntry(100))
				next := theJournal.LeaseName(journal.KindActive, 1)
				api.edit(next, tc.change)
				for number := range 12 { // needs more than one Lease
					must(t, store.Write(contextWithTimeout(t, time.Minute), largeEntry(number)))
				}
				api.mu.Lock()
				kept := journal.Encoded(api.leases[next])[newEntry(100).UID] != ""
				api.mu.Unlock()
				got, err := store.TakeOver(t.Context())
				if err != nil || !kept || len(got) != tc.inherited {
					t.Errorf("entry kept: %v, inherited %v, %v", kept, claimNames(got), err)
				}
			})
		})
	}
}

// TestTakeOverAfterFailedRequests fails the first request of each listed verb.
func TestTakeOverAfterFailedRequests(t *testing.T) {
	conflict := apierrors.NewConflict(leasesResource, leaseName, errors.New("changed"))
	unavailable := apierrors.NewServiceUnavailable("etcd")
	for name, tc := range map[string]struct {
		failures map[string]error
		want     error
	}{
		"the Lease was changed":                      {map[string]error{"update": conflict}, nil},
		"the Lease was deleted and created again":    {map[string]error{"update": apierrors.NewNotFound(leasesResource, leaseName)}, nil},
		"the write failed":                           {map[string]error{"update": unavailable}, unavailable},
		"the Lease was changed, and the read failed": {map[string]error{"update": conflict, "get": unavailable}, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				storeLease(t, api, journal.KindActive, 0, custodyAt(4), newEntry(0))
				api.before = func(verb string, _ *coordinationv1.Lease) error {
					err := tc.failures[verb]
					delete(tc.failures, verb)
					return err
				}
				got, err := New(config(api, pod, 5)).TakeOver(t.Context())
				if !errors.Is(err, tc.want) || (err == nil) != (len(got) == 1) {
					t.Errorf("inherited %v, error %v, want %v", claimNames(got), err, tc.want)
				}
			})
		})
	}
}
