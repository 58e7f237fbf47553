package journalstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// TestRefusalAfterUnknownOutcomeReadsTheLease: the first write may have been executed, and all
// later ones are refused. Only the Lease shows which entries are stored.
func TestRefusalAfterUnknownOutcomeReadsTheLease(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for _, remove := range []bool{false, true} {
			t.Run(fmt.Sprintf("applied %v, remove %v", applied, remove), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					api, store := oneEntry(t)
					claim, readable := newEntry(2).UID, atomic.Bool{}
					failUnknown(api, applied, &readable)
					if remove {
						claim = newEntry(1).UID
						if store.RemoveNow(t.Context(), claim) == nil {
							t.Error("RemoveNow succeeded")
						}
					} else if store.Write(t.Context(), newEntry(2)) == nil {
						t.Error("Write succeeded")
					}
					<-time.After(10 * time.Minute)
					if !store.Has(claim) {
						t.Error("the journal forgot an entry that it could not read")
					}
					readable.Store(true)
					<-time.After(10 * time.Second)
					if stored := applied != remove; store.Has(claim) != stored {
						t.Errorf("in the journal: %v, stored: %v", !stored, stored)
					}
				})
			})
		}
	}
}

// failUnknown fails the next write without an answer, and forbids all later ones. Reads are
// forbidden until readable is set.
func failUnknown(api *server, applied bool, readable *atomic.Bool) {
	first := true
	hook := func(after bool) func(string, *coordinationv1.Lease) error {
		return func(verb string, _ *coordinationv1.Lease) error {
			switch {
			case verb == "get" && !readable.Load():
				return errForbidden
			case verb == "get" || verb == "list":
				return nil
			case first && after == applied:
				first = false
				return context.DeadlineExceeded
			case first:
				return nil
			}
			return errForbidden
		}
	}
	api.before, api.after = hook(false), hook(true)
}

// A request that was sent and not answered may be executed later: an early read proves nothing.
func TestLateWriteIsNotForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		var late *coordinationv1.Lease
		api.before = func(verb string, lease *coordinationv1.Lease) error {
			switch {
			case verb != "update":
				return nil
			case late == nil:
				late = lease
				return context.DeadlineExceeded
			}
			return errForbidden
		}
		if store.Write(t.Context(), newEntry(2)) == nil {
			t.Error("Write succeeded")
		}
		<-time.After(50 * time.Second)
		_, err := api.store("update", late)
		must(t, err)
		if !store.Has(newEntry(2).UID) {
			t.Error("the journal has given up an entry that is stored")
		}
		<-time.After(5 * time.Minute)
		if expectStored(t, api, 1, 2); !store.Has(newEntry(2).UID) {
			t.Error("the journal has given up an entry that is stored")
		}
	})
}

// The API server takes an update without a change for no write: the version would stay, and a request
// without an answer would still be accepted. The journal is not watched here.
func TestWriteAfterUnknownOutcomeEndsTheLateOne(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprintf("remove %v", remove), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api, store := oneEntry(t)
				late := delayNextUpdate(api)
				undo, want := func() error { return store.Write(t.Context(), newEntry(1)) }, []int{1}
				if remove {
					undo = func() error { return store.RemoveNow(t.Context(), newEntry(2).UID) }
					if store.Write(t.Context(), newEntry(2)) == nil {
						t.Error("Write succeeded")
					}
				} else if store.RemoveNow(t.Context(), newEntry(1).UID) == nil {
					t.Error("RemoveNow succeeded")
				}
				must(t, undo())
				if _, err := api.store("update", late()); !apierrors.IsConflict(err) {
					t.Errorf("the late write: %v, want a conflict", err)
				}
				expectStored(t, api, want...)
			})
		})
	}
}

// delayNextUpdate leaves the next update without an answer and without effect, and returns a function
// that returns its Lease.
func delayNextUpdate(api *server) func() *coordinationv1.Lease {
	var late *coordinationv1.Lease
	api.before = func(verb string, lease *coordinationv1.Lease) error {
		if verb == "update" && late == nil {
			late = lease.DeepCopy()
			return context.DeadlineExceeded
		}
		return nil
	}
	return func() *coordinationv1.Lease { return late }
}

// A write without an answer may have stored the entry, so its removal needs a write as well.
func TestRemovalAfterUnknownOutcomeNeedsAWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		readable := atomic.Bool{}
		readable.Store(true)
		failUnknown(api, true, &readable)
		if store.Write(t.Context(), newEntry(2)) == nil {
			t.Error("Write succeeded")
		}
		for range 3 {
			if err := store.RemoveNow(t.Context(), newEntry(2).UID); !apierrors.IsForbidden(err) || !store.Has(newEntry(2).UID) {
				t.Errorf("RemoveNow = %v, in the journal: %v", err, store.Has(newEntry(2).UID))
			}
			<-time.After(time.Minute)
		}
		api.setHooks(nil, nil)
		<-time.After(10 * time.Second)
		if expectStored(t, api, 1); store.Has(newEntry(2).UID) {
			t.Error("the removal was not retried")
		}
	})
}

// answers returns a hook that acts on the first write, and answers writes with the errors in
// turn, then with Forbidden.
func answers(act func(*coordinationv1.Lease), errs ...error) func(string, *coordinationv1.Lease) error {
	return func(verb string, lease *coordinationv1.Lease) error {
		if verb == "get" || verb == "list" {
			return nil
		}
		if act != nil {
			act(lease)
			act = nil
		}
		if len(errs) > 0 {
			err := errs[0]
			errs = errs[1:]
			return err
		}
		return errForbidden
	}
}

// An admission plugin removes a durable entry from a write, and all later writes are forbidden.
func TestForbiddenAfterChangeOnAdmissionReadsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.before = answers(func(lease *coordinationv1.Lease) {
			delete(lease.Annotations, journal.EntryPrefix+string(newEntry(1).UID))
		}, nil)
		if store.Write(t.Context(), newEntry(2)) == nil {
			t.Error("Write succeeded")
		}
		<-time.After(5 * time.Minute)
		if expectStored(t, api, 2); !store.Has(newEntry(1).UID) || !store.Has(newEntry(2).UID) {
			t.Errorf("in the journal: old %v, new %v", store.Has(newEntry(1).UID), store.Has(newEntry(2).UID))
		}
		api.setHooks(nil, nil)
		<-time.After(10 * time.Second)
		expectStored(t, api, 1, 2)
	})
}

// A user deletes the Lease while its writes are refused: its durable entries are written again.
func TestLeaseDeletedWhileWritesAreForbiddenIsRepaired(t *testing.T) {
	for name, tc := range map[string]struct {
		latency time.Duration
		watched bool
		first   []error
	}{
		"before the write":                {0, true, nil},
		"during the write":                {time.Second, true, nil},
		"during a write to be retried":    {time.Second, true, []error{apierrors.NewTooManyRequests("later", 1)}},
		"before an answer is missing":     {0, true, []error{context.DeadlineExceeded}},
		"during a write without answer":   {time.Second, true, []error{context.DeadlineExceeded}},
		"unseen, and then no answer":      {0, false, []error{context.DeadlineExceeded}},
		"unseen, during a missing answer": {time.Second, false, []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				store := New(config(api, pod, 5))
				if run(t, store); tc.watched {
					startWatch(t, store)
				}
				must(t, store.Write(t.Context(), newEntry(1)))
				api.before, api.latency = answers(nil, tc.first...), tc.latency
				refused := startWrite(t, store, 2)
				<-time.After(tc.latency / 2)
				api.remove(leaseName)
				if err := <-refused; err == nil {
					t.Error("Write succeeded")
				}
				<-time.After(5 * time.Minute)
				if store.Has(newEntry(2).UID) || !store.Has(newEntry(1).UID) {
					t.Errorf("in the journal: old %v, new %v", store.Has(newEntry(1).UID), store.Has(newEntry(2).UID))
				}
				api.setHooks(nil, nil)
				<-time.After(10 * time.Second)
				expectLease(t, api, 1)
			})
		})
	}
}

// Creating is forbidden, updating is not, and nothing watches the Leases.
func TestUnseenDeletedLeaseIsRepairedAfterForbiddenCreate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 5))
		run(t, store)
		must(t, store.Write(t.Context(), newEntry(1)))
		api.remove(leaseName)
		api.before = func(verb string, _ *coordinationv1.Lease) error {
			if verb == "create" {
				return errForbidden
			}
			return nil
		}
		if err := store.Write(t.Context(), newEntry(2)); !apierrors.IsForbidden(err) || store.Has(newEntry(2).UID) ||
			!store.Has(newEntry(1).UID) {
			t.Errorf("error = %v, journal has new %v, old %v", err, store.Has(newEntry(2).UID), store.Has(newEntry(1).UID))
		}
		api.setHooks(nil, nil)
		<-time.After(10 * time.Second)
		expectStored(t, api, 1)
	})
}
