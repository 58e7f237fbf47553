package journalstore_test

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// storeLeaderLease stores the leader Lease as the leader of the term acquired it.
func storeLeaderLease(api *server, transitions int32) {
	api.edit("leader", func(l *coordinationv1.Lease) {
		l.UID, l.Spec.LeaseTransitions = custodyAt(0).LeaderLease, ptr.To(transitions)
	})
}

func TestFormerLeaderDoesNotTakeJournalBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		storeLease(t, api, journal.KindActive, 0, custodyAt(5), newEntry(0))
		storeLeaderLease(api, 5)
		next, frozen := New(config(api, pod, 6)), false
		api.before = func(verb string, _ *coordinationv1.Lease) error {
			if verb == "update" && !frozen {
				frozen = true // the former leader has listed, and loses its lease before it writes
				storeLeaderLease(api, 6)
				run(t, next)
				must(t, next.Write(t.Context(), newEntry(1)))
			}
			return nil
		}
		settings, lost := config(api, otherPod, 5), error(nil)
		settings.Lost = func(err error) { lost = err }
		if _, err := New(settings).Start(contextWithTimeout(t, time.Hour)); !errors.Is(err, ErrLost) ||
			!errors.Is(lost, ErrLost) {
			t.Errorf("the former leader: error = %v, lost = %v; want ErrLost", err, lost)
		}
		must(t, next.Write(contextWithTimeout(t, time.Minute), newEntry(2)))
		for _, entry := range api.entries(journal.KindActive) {
			if entry.CustodyBroken {
				t.Errorf("entry %s is in broken custody", entry.Name)
			}
		}
	})
}

func TestLaterTermIsReadFromLeaderLease(t *testing.T) {
	for name, tc := range map[string]struct {
		// leader is the term in the leader Lease, negative without a leader Lease.
		leader int32
		want   error
	}{
		"a later leader":              {6, ErrLost},
		"the leader Lease is gone":    {-1, ErrLost},
		"the recorded term never was": {5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				api := newServer()
				storeLease(t, api, journal.KindActive, 0, custodyAt(6), newEntry(0))
				api.edit("of another driver",
					func(l *coordinationv1.Lease) { l.UID, l.Spec.LeaseTransitions = "another", ptr.To[int32](5) })
				if tc.leader >= 0 {
					storeLeaderLease(api, tc.leader)
				}
				entries, err := New(config(api, pod, 5)).Start(contextWithTimeout(t, time.Hour))
				if !errors.Is(err, tc.want) {
					t.Fatalf("error = %v, want %v", err, tc.want)
				}
				if err == nil && (len(entries) != 1 || !entries[0].CustodyBroken) {
					t.Errorf("entries = %+v, want one in broken custody", entries)
				}
			})
		})
	}
}

func TestLeaderEndsForLeaseOfLaterTerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		storeLeaderLease(api, 5)
		settings, lost := config(api, pod, 5), error(nil)
		settings.Lost = func(err error) { lost = err }
		store := New(settings)
		run(t, store)
		storeLeaderLease(api, 6)
		storeLease(t, api, journal.KindActive, 7, custodyAt(6), newEntry(1))
		if _, err := store.TakeOver(t.Context()); !errors.Is(err, ErrLost) || !errors.Is(lost, ErrLost) {
			t.Errorf("error = %v, lost = %v; want ErrLost", err, lost)
		}
		if err := store.Write(contextWithTimeout(t, time.Minute), newEntry(2)); !errors.Is(err, ErrLost) {
			t.Errorf("a write: %v, want ErrLost", err)
		}
	})
}

// A teardown takes the journal of the current term for complete, unless its writer leaves entries out.
func TestJournalSaysThatItIsOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		api := newServer()
		name := theJournal.LeaseName(journal.KindActive, 0)
		term := int32(0)
		for _, off := range []bool{false, true, false} {
			started := config(api, pod, term)
			started.Off = off
			run(t, New(started))
			term++
			api.edit(name, func(l *coordinationv1.Lease) {
				if _, says := l.Annotations[journal.OffAnnotation]; says != off {
					t.Errorf("after %d terms: says %t that the journal is off, want %t", term, says, off)
				}
			})
		}
	})
}
