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
	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestMissingSourceOfGoneClaimBecomesUnresolved(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, false, 1)
	f.step(true)
	f.vanish()
	f.inject(codes.NotFound, false, 9)
	f.again(true)
	f.Timeouts.Unresolved = 0
	f.again(false)
	f.expect(0, 0, 2, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

func TestEntryOfFailedWriteIsRemovedForGoneClaim(t *testing.T) {
	f := newFlow(t)
	f.fail("update", "leases", false)
	f.step(true)
	f.vanish()
	f.again(false)
	f.expect(0, 0, 0, 0)
}

func TestUnresolvedEntryNeedsNoStoredRequest(t *testing.T) {
	f := newFlow(t)
	f.fail("update", "leases", false)
	f.step(true)
	f.Journal = tooSmall{f.store}
	f.inject(codes.Internal, false, 9)
	f.step(true)
	f.vanish()
	f.again(true)
	f.Timeouts.Unresolved = 0
	f.again(false)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// narrow is a journal that whole entries of volumes being discarded do not fit into.
type narrow struct{ *store.Store }

func (n narrow) Write(ctx context.Context, entry journal.Entry) error {
	if entry.State == journal.Discarding && len(entry.Request.GetVolumeCapabilities()) > 0 {
		return journal.ErrTooLarge
	}
	return n.Store.Write(ctx, entry)
}

func TestLargeUnusedVolumeIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.change(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 2}))
	f.Journal = narrow{f.store}
	f.step(true)
	f.expect(1, 0, 1, 1)
	f.terms++
	f.restart() // the entry has the handle
	f.step(true)
	f.step(false)
	if len(f.mock.Volumes()) > 1 || len(f.entries(journal.KindActive)) > 0 {
		t.Errorf("%d volumes, %d entries", len(f.mock.Volumes()), len(f.entries(journal.KindActive)))
	}
}

// The process ended after it made the entry an active one again.
func TestApprovedEntryInBothPlacesIsRemovedFromBoth(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	f.terms += 2
	f.restart()
	f.again(false)
	approved := f.entries(journal.KindUnresolved)[0]
	approved.Unresolved.Finish = true
	active := approved
	active.Unresolved, active.CustodyBroken = nil, false
	f.must(f.store.Write(t.Context(), active))
	f.terms++
	f.restart()
	f.Approve(t.Context(), approved)
	f.again(false)
	f.expect(1, 1, 2, 0)
	if left := f.entries(journal.KindUnresolved); len(left) != 0 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

// The journal may be writing unresolved entries when it reports an approval.
func TestApprovalWritesNothing(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	forged := f.entries(journal.KindActive)[0]
	forged.UID, forged.Unresolved = "another", &journal.Unresolved{Finish: true}
	f.client.ClearActions()
	f.Approve(t.Context(), forged)
	if actions := f.client.Actions(); len(actions) > 0 {
		t.Errorf("requests: %v", actions)
	}
}

func TestHandleOfRequestWithSecretIsHiddenAfterRestart(t *testing.T) {
	var r claimRecord
	r.inherit(journal.Entry{State: journal.Discarding, Handle: "of password", Secret: &journal.Secret{}, Volume: &v1.PersistentVolume{}}, &v1.PersistentVolumeClaim{}, &plan{}, false)
	if r.handle != "of password" || strings.Contains(r.shown, "password") || r.shown == "" {
		t.Errorf("handle %q, shown as %q", r.handle, r.shown)
	}
}

// stuck is a journal that removes no entry.
type stuck struct{ *store.Store }

func (stuck) RemoveNow(context.Context, types.UID) error { return errors.New("scripted") }

func TestUnremovableEntryIsReportedOnTheVolume(t *testing.T) {
	f := newFlow(t)
	f.step(false)
	f.vanish()
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	volume.Status.Phase = v1.VolumeReleased
	_, err = f.client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	f.must(err)
	f.must(f.Volumes.GetStore().Update(volume))
	f.Journal = stuck{f.store}
	if err := f.deletions.Reconcile(t.Context(), "pvc-uid"); err == nil {
		t.Error("want an error")
	}
	f.expect(1, 1, 1, 0)
	if events := f.reported(); !strings.Contains(events, "VolumeFailedDelete") {
		t.Errorf("events: %s", events)
	}
}
