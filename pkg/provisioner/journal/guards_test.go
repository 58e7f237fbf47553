package journal_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
)

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
