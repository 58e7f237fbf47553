package journalstore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

var errForbidden = apierrors.NewForbidden(leasesResource, leaseName, errors.New("no right to leases"))

// failWrites returns a hook that fails every write with the error.
func failWrites(err error) func(string, *coordinationv1.Lease) error {
	return func(verb string, _ *coordinationv1.Lease) error {
		if verb == "create" || verb == "update" {
			return err
		}
		return nil
	}
}

// expectStored checks the claims of the stored entries.
func expectStored(t *testing.T, api *server, numbers ...int) {
	t.Helper()
	want := map[types.UID]bool{}
	for _, number := range numbers {
		want[newEntry(number).UID] = true
	}
	got := map[types.UID]bool{}
	for claim := range api.entries(journal.KindActive) {
		got[claim] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("stored entries: %v, want %v", slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
	}
}

func TestForbiddenEntryIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.before = failWrites(errForbidden)
		if err := store.Write(t.Context(), newEntry(2)); !apierrors.IsForbidden(err) {
			t.Errorf("error = %v, want Forbidden", err)
		}
		if store.Has(newEntry(2).UID) || store.Pending() {
			t.Errorf("in the journal: %v, pending: %v", store.Has(newEntry(2).UID), store.Pending())
		}
		must(t, store.RemoveNow(contextWithTimeout(t, time.Minute), newEntry(2).UID))
		if err := store.Write(t.Context(), withParameter(newEntry(1), "new")); !apierrors.IsForbidden(err) ||
			!store.Has(newEntry(1).UID) {
			t.Errorf("error = %v, in the journal: %v", err, store.Has(newEntry(1).UID))
		}
		api.setHooks(nil, nil)
		must(t, store.Write(t.Context(), newEntry(3)))
		expectStored(t, api, 1, 3)
		if mark := parameterOf(api.entries(journal.KindActive)[newEntry(1).UID]); mark != "" {
			t.Errorf("the refused request %q is stored", mark)
		}
	})
}

func TestForbiddenWritesAreNotRetriedForever(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		requests := 0
		api.before = func(string, *coordinationv1.Lease) error { requests++; return errForbidden }
		if errs := writeAll(t, store, newEntry(2), newEntry(3), newEntry(4)); slices.Contains(errs, nil) {
			t.Errorf("errors: %v", errs)
		}
		refused := requests
		<-time.After(time.Hour)
		if requests != refused || refused > 4 {
			t.Errorf("%d requests for three entries, %d later", refused, requests-refused)
		}
	})
}

// TestOnlyDefiniteAnswersGiveUpAnEntry: after an answer that proves nothing the entry counts
// as stored, because the write may have been executed.
func TestOnlyDefiniteAnswersGiveUpAnEntry(t *testing.T) {
	kind := schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}
	for name, tc := range map[string]struct {
		answer  error
		givenUp bool
	}{
		"Forbidden":          {errForbidden, true},
		"Invalid":            {apierrors.NewInvalid(kind, leaseName, nil), true},
		"BadRequest":         {apierrors.NewBadRequest("bad"), true},
		"Unauthorized":       {apierrors.NewUnauthorized("expired"), true},
		"NotFound":           {apierrors.NewNotFound(coordinationv1.Resource("namespaces"), "ns"), true},
		"MethodNotSupported": {apierrors.NewMethodNotSupported(leasesResource, "update"), true},
		"TooLarge":           {apierrors.NewRequestEntityTooLargeError("too large"), true},
		"Conflict":           {apierrors.NewConflict(leasesResource, leaseName, errors.New("changed")), false},
		"TooManyRequests":    {apierrors.NewTooManyRequests("later", 1), false},
		"InternalError":      {apierrors.NewInternalError(errors.New("etcd: leader changed")), false},
		"ServiceUnavailable": {apierrors.NewServiceUnavailable("etcd"), false},
		"Timeout":            {apierrors.NewTimeoutError("late", 1), false},
		"ServerTimeout":      {apierrors.NewServerTimeout(leasesResource, "update", 1), false},
		"no answer":          {context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api, store := oneEntry(t)
				api.before = failWrites(tc.answer)
				if err := store.Write(t.Context(), newEntry(2)); err == nil {
					t.Error("Write succeeded")
				}
				if has := store.Has(newEntry(2).UID); has == tc.givenUp || !store.Has(newEntry(1).UID) {
					t.Errorf("new entry in the journal: %v, durable entry: %v", has, store.Has(newEntry(1).UID))
				}
				api.setHooks(nil, nil)
				<-time.After(time.Minute)
				if tc.givenUp {
					expectStored(t, api, 1)
				} else {
					expectStored(t, api, 1, 2)
				}
			})
		})
	}
}

func TestForbiddenRemovalKeepsEntryAndIsRetried(t *testing.T) {
	for name, now := range map[string]bool{"Remove": false, "RemoveNow": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api, store := oneEntry(t)
				api.before = failWrites(errForbidden)
				if store.Remove(newEntry(1).UID); now {
					for range 3 {
						if err := store.RemoveNow(contextWithTimeout(t, time.Minute), newEntry(1).UID); !apierrors.IsForbidden(err) {
							t.Errorf("RemoveNow = %v, want Forbidden", err)
						}
					}
				}
				<-time.After(time.Minute)
				if expectStored(t, api, 1); !store.Has(newEntry(1).UID) {
					t.Error("the journal no longer has an entry that is stored")
				}
				api.setHooks(nil, nil)
				<-time.After(10 * time.Second)
				if expectStored(t, api); store.Has(newEntry(1).UID) || store.Pending() {
					t.Error("the removal was not retried")
				}
			})
		})
	}
}

// keepEntry returns a hook that forbids Leases without the entry, as an admission policy can.
func keepEntry(number int) func(string, *coordinationv1.Lease) error {
	return func(verb string, lease *coordinationv1.Lease) error {
		if (verb == "create" || verb == "update") && journal.Encoded(lease)[newEntry(number).UID] == "" &&
			lease.Name == leaseName {
			return errForbidden
		}
		return nil
	}
}

func TestRefusedRemovalBlocksNoOtherChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		must(t, store.Write(t.Context(), newEntry(2)))
		must(t, store.Write(t.Context(), newEntry(3)))
		api.before = keepEntry(1)
		store.Remove(newEntry(1).UID)
		store.Remove(newEntry(2).UID)
		must(t, store.Write(contextWithTimeout(t, time.Minute), newEntry(4)))
		must(t, store.RemoveNow(contextWithTimeout(t, time.Minute), newEntry(3).UID))
		if expectStored(t, api, 1, 4); store.Has(newEntry(2).UID) || !store.Has(newEntry(1).UID) {
			t.Error("the journal differs from what is stored")
		}
		api.setHooks(nil, nil)
		<-time.After(10 * time.Second)
		expectStored(t, api, 4)
	})
}

// An entry whose removal is refused, and that is written again, must not end up in two Leases:
// RemoveNow would remove only one of them.
func TestEntryOfRefusedRemovalIsWrittenToItsLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.before = keepEntry(1)
		store.Remove(newEntry(1).UID)
		for number := 2; number < 22; number++ {
			must(t, store.Write(t.Context(), largeEntry(number)))
		}
		must(t, store.Write(t.Context(), largeEntry(1)))
		api.setHooks(nil, nil)
		must(t, store.RemoveNow(t.Context(), newEntry(1).UID))
		if _, stored := api.entries(journal.KindActive)[newEntry(1).UID]; stored {
			t.Error("the entry is stored after RemoveNow")
		}
	})
}

// Entries are removed while the write that would store them is refused.
func TestRemovalDuringForbiddenWriteNeedsNoWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.before, api.latency = failWrites(errForbidden), time.Second
		refused := startWrite(t, store, 2)
		must(t, store.RemoveNow(contextWithTimeout(t, time.Minute), newEntry(2).UID))
		if err := <-refused; !apierrors.IsForbidden(err) || store.Has(newEntry(2).UID) || store.Pending() {
			t.Errorf("error = %v, in the journal: %v, pending: %v", err, store.Has(newEntry(2).UID), store.Pending())
		}
	})
}

// The right is missing for a moment, twice: writes in between have succeeded.
func TestPermissionIsMissingSinceTheLastWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api, store := oneEntry(t)
		api.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &authorizationv1.SelfSubjectAccessReview{}, nil // not allowed
		})
		for range 2 {
			if store.Forbidden(t.Context(), errForbidden) {
				t.Error("Forbidden = true after a moment without permission")
			}
			<-time.After(time.Hour)
			must(t, store.Write(t.Context(), newEntry(1)))
		}
	})
}

// A crash during a take-over can leave an entry in two Leases. RemoveNow removes both: a later
// leader would request the deleted volume again.
func TestRemoveNowRemovesEntryFromAllLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		storeLease(t, api, journal.KindActive, 0, custodyAt(4), newEntry(1))
		storeLease(t, api, journal.KindActive, 1, custodyAt(4), newEntry(1))
		store := New(config(api, pod, 5))
		run(t, store)
		must(t, store.RemoveNow(t.Context(), newEntry(1).UID))
		expectStored(t, api)
	})
}
