package journalstore_test

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// storeLease stores a Lease of another process with the entries.
func storeLease(t *testing.T, api *server, kind journal.Kind, number int, custody journal.Custody,
	entries ...journal.Entry) {
	t.Helper()
	texts := map[types.UID]string{}
	for _, entry := range entries {
		text, err := journal.Encode(entry)
		must(t, err)
		texts[entry.UID] = text
	}
	lease := theJournal.Lease(kind, number, otherPod, custody, texts)
	api.edit(lease.Name, func(l *coordinationv1.Lease) { *l = *lease })
}

func claimNames(entries []journal.Entry) []string {
	var numbers []string
	for _, entry := range entries {
		numbers = append(numbers, entry.Name)
	}
	slices.Sort(numbers)
	return numbers
}

func TestEntriesAreInherited(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded journal.Custody
		holder   string
		broken   bool
	}{
		"previous term":             {custodyAt(4), otherPod, false},
		"same term":                 {custodyAt(5), pod, false},
		"another leader in between": {custodyAt(3), otherPod, true},
		"other leader Lease":        {journal.Custody{LeaderLease: "other", Transitions: 5}, pod, true},
		"no custody":                {journal.Custody{}, pod, true},
		// A term has one holder: after a restore of etcd its number was given again.
		"same number, other holder": {custodyAt(5), otherPod, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				storeLease(t, api, journal.KindActive, 3, tc.recorded, newEntry(1), newEntry(2))
				api.edit(theJournal.LeaseName(journal.KindActive, 3),
					func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = tc.holder })
				store := New(config(api, pod, 5))
				inherited := run(t, store)
				if len(inherited) != 2 || inherited[0].CustodyBroken != tc.broken || !store.Has(newEntry(1).UID) {
					t.Fatalf("inherited %+v, want two with custody broken: %v", inherited, tc.broken)
				}
				for _, entry := range api.entries(journal.KindActive) {
					if entry.CustodyBroken != tc.broken {
						t.Errorf("entry %s is stored with custody broken: %v", entry.Name, entry.CustodyBroken)
					}
				}
				again, err := store.TakeOver(t.Context())
				if err != nil || len(again) != 0 {
					t.Errorf("the second time: %+v, %v", again, err)
				}
			})
		})
	}
}

func TestFailedTakeOverLosesNoEntry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		storeLease(t, api, journal.KindActive, 0, custodyAt(4), newEntry(0))
		storeLease(t, api, journal.KindActive, 1, custodyAt(4), newEntry(1))
		failures := 3
		api.before = func(verb string, lease *coordinationv1.Lease) error {
			if verb == "update" && lease.Name == theJournal.LeaseName(journal.KindActive, 1) && failures > 0 {
				failures--
				return apierrors.NewServerTimeout(leasesResource, verb, 1)
			}
			return nil
		}
		if got := claimNames(run(t, New(config(api, pod, 5)))); !slices.Equal(got, []string{"claim-0", "claim-1"}) {
			t.Errorf("inherited %v, want both", got)
		}
	})
}

func TestLeaseDeletedDuringTakeOverIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, conflict := range []bool{false, true} {
			api := newServer()
			storeLease(t, api, journal.KindActive, 0, custodyAt(4), newEntry(0))
			once := true
			api.before = func(verb string, lease *coordinationv1.Lease) error {
				if verb == "update" && once {
					once = false
					api.remove(lease.Name)
					if conflict {
						return apierrors.NewConflict(leasesResource, lease.Name, errors.New("changed"))
					}
				}
				return nil
			}
			if got := run(t, New(config(api, pod, 5))); len(got) != 1 || len(api.entries(journal.KindActive)) != 1 {
				t.Errorf("conflict %v: inherited %+v, stored %d", conflict, got, len(api.entries(journal.KindActive)))
			}
		}
	})
}

func TestWritingOldLeaderLosesJournal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		old := New(config(api, otherPod, 4))
		run(t, old)
		must(t, old.Write(t.Context(), newEntry(0)))
		listed := false
		api.before = func(verb string, _ *coordinationv1.Lease) error {
			if verb == "update" && !listed {
				listed = true // the new leader has listed; now the old one writes once more
				must(t, old.Write(t.Context(), newEntry(1)))
			}
			return nil
		}
		inherited := run(t, New(config(api, pod, 5)))
		if got := claimNames(inherited); !slices.Equal(got, []string{"claim-0", "claim-1"}) {
			t.Errorf("inherited %v, want both", got)
		}
		if err := old.Write(contextWithTimeout(t, time.Minute), newEntry(2)); !errors.Is(err, ErrLost) {
			t.Errorf("the old leader: %v, want ErrLost", err)
		}
	})
}

func TestLeaseOfOldLeaderIsNotOverwritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 5))
		run(t, store)
		must(t, store.Write(t.Context(), largeEntry(0)))
		for number := 1; number < 4; number++ { // as a frozen leader could, after the list
			storeLease(t, api, journal.KindActive, number, custodyAt(4), newEntry(100+number))
		}
		api.edit(theJournal.LeaseName(journal.KindActive, 4),
			func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"its": "own"} })
		for number := range 12 {
			must(t, store.Write(contextWithTimeout(t, time.Minute), largeEntry(number)))
		}
		got, err := store.TakeOver(t.Context())
		must(t, err)
		if names := claimNames(got); !slices.Equal(names, []string{"claim-101", "claim-102", "claim-103"}) {
			t.Errorf("inherited %v, want those of the old leader", names)
		}
		if all := api.entries(journal.KindActive); len(all) != 15 {
			t.Errorf("%d entries are stored, want 15", len(all))
		}
		api.mu.Lock()
		defer api.mu.Unlock()
		if api.leases[theJournal.LeaseName(journal.KindActive, 4)].Annotations["its"] != "own" {
			t.Error("a Lease of another owner was overwritten")
		}
	})
}

func TestLeaseOfNewerLeaderEndsJournal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 5))
		run(t, store)
		must(t, store.Write(t.Context(), largeEntry(0)))
		for number := 1; number < 4; number++ {
			storeLease(t, api, journal.KindActive, number, custodyAt(6), newEntry(100))
		}
		var err error
		for number := 0; number < 12 && err == nil; number++ {
			err = store.Write(contextWithTimeout(t, time.Minute), largeEntry(number))
		}
		if !errors.Is(err, ErrLost) {
			t.Errorf("error = %v, want ErrLost", err)
		}
	})
}

func TestTakeOverDuringWritesSharesNoLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		store := New(config(api, pod, 5))
		run(t, store)
		must(t, store.Write(t.Context(), largeEntry(0)))
		for number := 1; number < 6; number++ {
			must(t, store.Write(t.Context(), largeEntry(number)))
		}
		next := len(api.names())
		storeLease(t, api, journal.KindActive, next, custodyAt(4), newEntry(100))
		written := make(chan error, 12)
		started := false
		api.before = func(verb string, lease *coordinationv1.Lease) error {
			if verb == "update" && lease.Name == theJournal.LeaseName(journal.KindActive, next) && !started {
				started = true
				for number := 6; number < 18; number++ { // needs new Leases
					go func() { written <- store.Write(t.Context(), largeEntry(number)) }()
				}
				<-time.After(time.Second)
			}
			return nil
		}
		got, err := store.TakeOver(t.Context())
		if err != nil || len(got) != 1 {
			t.Errorf("inherited %+v, %v", got, err)
		}
		for range 12 {
			must(t, <-written)
		}
		if all := api.entries(journal.KindActive); len(all) != 19 {
			t.Errorf("%d entries are stored, want 19", len(all))
		}
	})
}

func TestDuplicateEntryIsRemovedFromBothLeases(t *testing.T) {
	discarding := newEntry(1)
	discarding.State, discarding.Handle = journal.Discarding, "vol-1"
	for name, tc := range map[string]struct{ first, second journal.Entry }{
		"equal":                 {newEntry(1), newEntry(1)},
		"discarding, requested": {discarding, newEntry(1)},
		"requested, discarding": {newEntry(1), discarding},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				storeLease(t, api, journal.KindActive, 0, custodyAt(4), tc.first, newEntry(2))
				storeLease(t, api, journal.KindActive, 1, custodyAt(4), newEntry(3), tc.second)
				store := New(config(api, pod, 5))
				inherited := run(t, store)
				states := map[types.UID]journal.State{}
				for _, entry := range inherited {
					states[entry.UID] = entry.State
				}
				if len(inherited) != 3 || len(states) != 3 || states[newEntry(1).UID] != journal.Requested {
					t.Errorf("inherited %+v, want claim-1 as requested", inherited)
				}
				must(t, store.RemoveNow(t.Context(), newEntry(1).UID))
				<-time.After(2 * time.Second)
				if _, left := api.entries(journal.KindActive)[newEntry(1).UID]; left || len(api.entries(journal.KindActive)) != 2 {
					t.Errorf("stored: %v", api.entries(journal.KindActive))
				}
			})
		})
	}
}

func TestForgedLeasesDoNotStopStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		storeLease(t, api, journal.KindActive, 0, custodyAt(1), newEntry(1))
		name := theJournal.LeaseName(journal.KindActive, 0)
		api.edit(name, func(l *coordinationv1.Lease) {
			l.Annotations[journal.EntryPrefix+"forged"] = "?"
			l.Spec.HolderIdentity = nil
		})
		huge := theJournal.Lease(journal.KindActive, 0, otherPod, custodyAt(1), nil)
		huge.Name = "csi.example.com-journal-9223372036854775807"
		api.edit(huge.Name, func(l *coordinationv1.Lease) { *l = *huge })
		settings := config(api, pod, 5)
		recorder := record.NewFakeRecorder(10)
		settings.Recorder = recorder
		store := New(settings)
		inherited := run(t, store)
		if len(inherited) != 1 || !inherited[0].CustodyBroken {
			t.Errorf("inherited %+v", inherited)
		}
		must(t, store.Write(t.Context(), newEntry(2)))
		api.mu.Lock()
		text := api.leases[name].Annotations[journal.EntryPrefix+"forged"]
		api.mu.Unlock()
		if text != "?" {
			t.Errorf("the unreadable entry is now %q", text)
		}
		if len(recorder.Events) != 1 {
			t.Errorf("%d events, want one about the unreadable entry", len(recorder.Events))
		}
	})
}

func TestMissingPermissionCountsAfterOneMinute(t *testing.T) {
	for name, tc := range map[string]struct {
		verb    string
		allowed bool
		unasked bool // the right to ask is missing
		want    error
	}{
		"list permission missing":      {"list", false, false, ErrForbidden},
		"create permission missing":    {"create", false, false, ErrForbidden},
		"permission to ask is missing": {"list", false, true, ErrForbidden},
		"forbidden for another reason": {"list", true, false, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				api.before = func(verb string, _ *coordinationv1.Lease) error {
					if verb == tc.verb {
						return apierrors.NewForbidden(leasesResource, "", errors.New("no"))
					}
					return nil
				}
				api.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
					if tc.unasked {
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectaccessreviews"}, "",
							errors.New("no"))
					}
					return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: tc.allowed}}, nil
				})
				started := time.Now()
				_, err := New(config(api, pod, 5)).Start(contextWithTimeout(t, time.Hour))
				if !errors.Is(err, tc.want) || time.Since(started) < time.Minute || errors.Is(tc.want, ErrForbidden) &&
					time.Since(started) > 2*time.Minute {
					t.Errorf("after %v: %v, want %v", time.Since(started), err, tc.want)
				}
			})
		})
	}
}

func TestCustodyWithoutElectionLastsTenMinutes(t *testing.T) {
	for minutes, broken := range map[int]bool{0: false, 9: false, 11: true, -1: true} {
		t.Run(fmt.Sprint(minutes), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				storeLease(t, api, journal.KindActive, 0, journal.Custody{Written: time.Now().
					Add(time.Duration(-minutes) * time.Minute).Unix()}, newEntry(1))
				settings := config(api, pod, 5)
				settings.Custody = journal.Custody{}
				if got := run(t, New(settings)); len(got) != 1 || got[0].CustodyBroken != broken {
					t.Errorf("inherited %+v, want custody broken: %v", got, broken)
				}
			})
		})
	}
}

// A quota or an admission plugin refuses Leases. Without a Lease there is no entry to take over: volumes are
// deleted, and each claim says that its entry is refused.
func TestRefusedFirstLeaseDelaysNothing(t *testing.T) {
	for name, refusal := range map[string]error{
		"quota":            apierrors.NewForbidden(leasesResource, "", errors.New("exceeded quota")),
		"admission policy": apierrors.NewInvalid(schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, "", nil),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api, refused := newServer(), true
				api.before = func(verb string, _ *coordinationv1.Lease) error {
					if verb == "create" && refused {
						return refusal
					}
					return nil
				}
				api.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
				})
				store, began := New(config(api, pod, 5)), time.Now()
				if entries := run(t, store); len(entries) > 0 || time.Since(began) > 0 {
					t.Errorf("%d entries after %s", len(entries), time.Since(began))
				}
				if err := store.Write(t.Context(), newEntry(1)); err == nil {
					t.Error("an entry is written though Leases are refused")
				}
				refused = false
				must(t, store.Write(t.Context(), newEntry(1)))
			})
		})
	}
}
