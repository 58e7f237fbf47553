package provisioning

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestMissingSourceOfGoneClaimBecomesUnresolved(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, false, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.injectFault(codes.NotFound, false, 9)
	f.reconcileDeleted(true)
	f.Timeouts.Unresolved = 0
	f.reconcileDeleted(false)
	f.expect(0, 0, 2, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

func TestEntryOfFailedWriteIsRemovedForGoneClaim(t *testing.T) {
	f := newFlow(t)
	f.failNext("update", "leases", false)
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(false)
	f.expect(0, 0, 0, 0)
}

func TestUnresolvedEntryNeedsNoStoredRequest(t *testing.T) {
	f := newFlow(t)
	f.failNext("update", "leases", false)
	f.reconcile(true)
	f.Journal = tooSmall{f.store}
	f.injectFault(codes.Internal, false, 9)
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(true)
	f.Timeouts.Unresolved = 0
	f.reconcileDeleted(false)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// smallForDiscarding is a journal that is too small for complete discarding entries.
type smallForDiscarding struct{ *journalstore.Store }

func (n smallForDiscarding) Write(ctx context.Context, entry journal.Entry) error {
	if entry.State == journal.Discarding && len(entry.Request.GetVolumeCapabilities()) > 0 {
		return journal.ErrTooLarge
	}
	return n.Store.Write(ctx, entry)
}

func TestVolumeWithTooLargeEntryIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.Journal = refusingDiscarding{f.store, journal.ErrTooLarge}
	f.reconcile(false)
	if len(f.mock.Volumes()) > 0 {
		t.Errorf("the volumes %v are left", f.mock.Volumes())
	}
}

// refusingDiscarding is a journal that refuses entries of volumes to be discarded, with the error.
type refusingDiscarding struct {
	*journalstore.Store
	err error
}

func (n refusingDiscarding) Write(ctx context.Context, entry journal.Entry) error {
	if entry.State == journal.Discarding {
		return n.err
	}
	return n.Store.Write(ctx, entry)
}

// The claim waits until the entry is written, and an event says so.
func TestVolumeThatCannotBeDiscardedIsReported(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.takeEvents()
	f.Journal = refusingDiscarding{f.store, errors.New("no")}
	f.reconcile(true)
	if events := f.takeEvents(); !strings.Contains(events, "ProvisioningFailed") ||
		!strings.Contains(events, "not deleted before its journal entry says so") {
		t.Errorf("the events are %q", events)
	}
}

func TestLargeUnusedVolumeIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 2}))
	f.Journal = smallForDiscarding{f.store}
	f.reconcile(true)
	f.expect(1, 0, 1, 1)
	f.reconcile(true)
	f.reconcile(false)
	f.expect(0, 0, 1, 0)
}

func TestLargeInheritedDiscardIsLeftAlone(t *testing.T) {
	f := newFlow(t)
	f.Journal = smallForDiscarding{f.store}
	f.failDiscard()
	f.terms++
	f.restart() // the entry has the handle, and no request
	f.reconcile(false)
	left := f.entries(journal.KindUnresolved)
	if len(left) != 1 || left[0].Handle != f.mock.Volumes()[0].ID || left[0].State != journal.Discarding {
		t.Errorf("unresolved entries: %+v", left)
	}
	f.reconcile(false) // the claim is served again
	f.expect(1, 1, 2, 0)
}

// The process crashed between the write of the active entry and the removal of the unresolved
// one.
func TestApprovedEntryIsRemovedFromBothLeases(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.terms += 2
	f.restart()
	f.reconcileDeleted(false)
	approved := f.entries(journal.KindUnresolved)[0]
	approved.Unresolved.Finish = true
	active := approved
	active.Unresolved, active.CustodyBroken = nil, false
	f.must(f.store.Write(t.Context(), active))
	f.terms++
	f.restart()
	f.Approve(t.Context(), approved)
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
	if left := f.entries(journal.KindUnresolved); len(left) != 0 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// The journal may hold its lock when it reports an approval.
func TestApprovalWritesNothing(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	forged := f.entries(journal.KindActive)[0]
	forged.UID, forged.Unresolved = "another", &journal.Unresolved{Finish: true}
	f.client.ClearActions()
	f.Approve(t.Context(), forged)
	if actions := f.client.Actions(); len(actions) > 0 {
		t.Errorf("requests: %v", actions)
	}
}

// failingRemoval is a journal whose RemoveNow fails.
type failingRemoval struct{ *journalstore.Store }

func (failingRemoval) RemoveNow(context.Context, types.UID) error { return errors.New("scripted") }

func TestFailedEntryRemovalIsReportedOnVolume(t *testing.T) {
	f := newFlow(t)
	f.reconcile(false)
	f.deleteClaim()
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	volume.Status.Phase = v1.VolumeReleased
	_, err = f.client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	f.must(err)
	f.must(f.Volumes.GetStore().Update(volume))
	f.Journal = failingRemoval{f.store}
	if err := f.deletions.Reconcile(t.Context(), "pvc-uid"); err == nil {
		t.Error("want an error")
	}
	f.expect(1, 1, 1, 0)
	if events := f.takeEvents(); !strings.Contains(events, "VolumeFailedDelete") {
		t.Errorf("events: %s", events)
	}
}
