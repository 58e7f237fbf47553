package provisioning

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// forgedEntry returns the entry of the flow's claim with another volume name.
func (f *flow) forgedEntry() journal.Entry {
	f.Helper()
	forged := f.entries(journal.KindActive)[0]
	forged.Volume.Name, forged.Request.Name = "another", "another"
	return forged
}

func TestFailedRejectionIsRepeatedByRescan(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	forged := f.forgedEntry()
	forged.UID = "forged"
	f.must(f.store.Write(t.Context(), forged))
	f.Timeouts.Rescan = time.Millisecond
	for range 3 { // the next scan fails too
		f.failNext("create", "leases", false)
	}
	f.rescan(t.Context(), f.inherit(t.Context(), []journal.Entry{forged}))
	for end := time.After(20 * time.Second); ; {
		active, unresolved := f.entries(journal.KindActive), f.entries(journal.KindUnresolved)
		if len(unresolved) == 1 && len(active) == 1 && active[0].UID == "uid" {
			return
		}
		select {
		case <-end:
			t.Fatalf("active entries: %+v, unresolved entries: %+v", active, unresolved)
		case <-time.After(time.Millisecond):
		}
	}
}

// The claim of a rejected entry is served meanwhile: its own entry must stay.
func TestRejectionWaitsForEntryOfClaim(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	forged := f.forgedEntry()
	left := f.inherit(t.Context(), []journal.Entry{forged})
	if active := f.entries(journal.KindActive); len(left) != 1 || len(active) != 1 || active[0].VolumeName() != "pvc-uid" {
		t.Fatalf("kept %d entries, active entries: %+v", len(left), active)
	}
	f.reconcile(false)
	left = f.inherit(t.Context(), left)
	f.expect(1, 1, 2, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(left) != 0 || len(unresolved) != 1 ||
		!strings.Contains(unresolved[0].Unresolved.Reason, "another") {
		t.Errorf("kept %d entries, unresolved entries: %+v", len(left), unresolved)
	}
}
