package provisioning

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestUnansweredRequestIsRepeatedWithoutItsClass(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.must(f.Classes.GetStore().Replace(nil, ""))
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
}

func TestVolumeOfDeletedNodeIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.expect(1, 0, 1, 1)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" })
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: csimock.DefaultName,
		VolumeBindingMode: &wait}
	_, err := f.client.StorageV1().StorageClasses().Update(f.Context(), class, metav1.UpdateOptions{})
	f.must(err)
	f.must(f.Classes.GetStore().Update(class))
	f.reconcile(false)
	f.reconcile(false)
	f.expect(0, 0, 2, 0)
	if node, selected := f.syncClaim().Annotations[storage.AnnSelectedNode]; selected {
		t.Errorf("the node %s is still selected", node)
	}
}

func TestVolumeWithNameConflictIsDiscarded(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}
	_, err := f.client.CoreV1().PersistentVolumes().Create(f.Context(), other, metav1.CreateOptions{})
	f.must(err)
	f.must(f.Volumes.GetStore().Add(other))
	f.reconcile(true)
	f.reconcile(true)
	f.expect(0, 1, 2, 0)
}

// The disk may be older than the entry: etcd may have been restored before the restart.
func TestInheritedVolumeIsNeverDiscarded(t *testing.T) {
	other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}
	for name, tc := range map[string]struct {
		prepare  func(*flow)
		recorded int
	}{
		"the node is gone": {func(f *flow) {
			f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" })
		}, 1},
		"the name is in use": {func(f *flow) {
			_, err := f.client.CoreV1().PersistentVolumes().Create(f.Context(), other, metav1.CreateOptions{})
			f.must(err)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.injectFault(codes.DeadlineExceeded, true, 1)
			f.reconcile(true)
			tc.prepare(f)
			f.terms++
			f.restart()
			for range 3 {
				_ = f.Reconcile(t.Context(), flowClaim)
			}
			f.expect(1, tc.recorded, anyNumber, len(f.entries(journal.KindActive)))
		})
	}
}

func TestFailedDiscardIsRepeated(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 2}))
	f.reconcile(true)
	f.expect(1, 0, 1, 1)
	f.reconcile(true)
	if events := f.takeEvents(); !strings.Contains(events, "ProvisioningCleanupFailed") {
		t.Errorf("events: %s", events)
	}
	f.reconcile(false)
	if len(f.mock.Volumes()) > 1 || len(f.entries(journal.KindActive)) > 0 {
		t.Errorf("%d volumes, %d entries", len(f.mock.Volumes()), len(f.entries(journal.KindActive)))
	}
}

func TestFailureOfFirstCallLeavesNoEntry(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.ResourceExhausted, false, 3)
	for range 3 {
		f.reconcile(true)
	}
	f.expect(0, 0, 3, 0)
	f.deleteClaim()
	f.reconcileDeleted(false)
	f.expect(0, 0, 3, 0)
}

func TestFailureAfterTimeoutMustBeRepeatedLater(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, false, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.injectFault(codes.InvalidArgument, false, 3)
	f.reconcileDeleted(false)
	f.reconcileDeleted(false)
	f.expect(0, 0, 3, 1)
	f.Timeouts.RepeatedFailure = time.Nanosecond
	f.reconcileDeleted(false)
	f.expect(0, 0, 4, 0)
}

func TestUnclearErrorOfGoneClaimBecomesUnresolved(t *testing.T) {
	for _, code := range []codes.Code{codes.Internal, codes.NotFound, codes.AlreadyExists} {
		t.Run(code.String(), func(t *testing.T) {
			f := newFlow(t)
			f.injectFault(codes.DeadlineExceeded, false, 1)
			f.injectFault(code, false, 9)
			f.reconcile(true)
			f.deleteClaim()
			f.reconcileDeleted(true)
			f.expect(0, 0, 2, 1)
			f.Timeouts.Unresolved = 0
			f.reconcileDeleted(false)
			f.expect(0, 0, 2, 0)
			if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 ||
				!strings.Contains(unresolved[0].Unresolved.Reason, "driver") {
				t.Errorf("unresolved entries: %+v", unresolved)
			}
		})
	}
}

// A driver that restarts now and then must not restart the hour after which an administrator
// is told.
func TestMissingAnswerIsNoNewReasonToWait(t *testing.T) {
	f := newFlow(t)
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Internal, codes.Unavailable} {
		f.injectFault(code, false, 1)
	}
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(true)
	f.reconcileDeleted(true)
	f.expect(0, 0, 3, 1)
	f.Timeouts.Unresolved = 0
	f.reconcileDeleted(false)
	f.expect(0, 0, 3, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

// The class of a claim changes after an Internal error.
func TestDoubtfulRequestIsBuiltAgain(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.Internal, false, 1)
	f.reconcile(true)
	class, err := f.client.StorageV1().StorageClasses().Get(t.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.Parameters = map[string]string{"pool": "changed"}
	f.must(f.Classes.GetStore().Update(class))
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Request.GetParameters()["pool"] != "changed" ||
		len(open[0].Superseded) != 1 {
		t.Errorf("entries: %+v", open)
	}
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
}

// After a mismatch, a superseded request is sent once.
func TestUnansweredOlderRequestIsNotRepeated(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.Internal, false, 1)
	f.reconcile(true)
	f.setClassParameter("pool", "changed")
	for _, code := range []codes.Code{codes.AlreadyExists, codes.DeadlineExceeded} {
		f.injectFault(code, false, 1)
		f.reconcile(true)
	}
	f.reconcile(false)
	f.expect(1, 1, 4, 0)
}

func TestJournalOffWritesNothing(t *testing.T) {
	f := newFlow(t)
	f.journaled.Store(false)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.expect(1, 0, 1, 0)
	f.reconcile(false)
	f.expect(1, 1, 1, 0)
}

func TestJournalOffFinishesEntries(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.setDeleting()
	f.terms++
	f.restart()
	f.journaled.Store(false)
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
}

func TestEntryWithOtherVolumeNameBecomesUnresolved(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.deleteClaim()
	forged := f.entries(journal.KindActive)[0]
	forged.UID = "another"
	f.must(f.store.Write(t.Context(), forged))
	f.terms++
	f.restart()
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 || unresolved[0].UID != "another" {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

func TestInfeasibleRequestWaitsForChange(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.InvalidArgument, false, 1)
	f.reconcile(false)
	f.expect(0, 0, 1, 0)
	if events := f.takeEvents(); !strings.Contains(events, "not retried for 1s") {
		t.Errorf("no event has the waiting time:\n%s", events)
	}
	changed := f.syncClaim().DeepCopy()
	changed.Annotations["team"] = "storage"
	if !f.needsReconcile(f.syncClaim(), changed) {
		t.Error("a changed annotation does not lead to a retry")
	}
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
}

func TestDeletedClaimWithoutCallIsForgotten(t *testing.T) {
	f := newFlow(t)
	f.setDeleting()
	f.reconcile(false)
	f.expect(0, 0, 0, 0)
	if _, known := f.memory.lookup("uid"); known {
		t.Error("the claim is still remembered")
	}
}

func TestHandleOfOwnVolumeIsAccepted(t *testing.T) {
	f := newFlow(t)
	own := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"},
		Spec:       v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: "h"}}},
	}
	f.must(f.Volumes.GetStore().Add(own))
	o := &observation{claim: f.syncClaim(), name: "pvc-uid"}
	if failure := f.checkHandle(backend.Answer{Handle: "h", Volume: own}, o); failure != nil {
		t.Error(failure.Err)
	}
	other := own.DeepCopy()
	other.Name = "another"
	f.must(f.Volumes.GetStore().Add(other))
	if failure := f.checkHandle(backend.Answer{Handle: "h", Volume: own}, o); failure == nil {
		t.Error("the handle of another volume is accepted")
	}
}

func TestHandlesOfUncachedVolumesAreReserved(t *testing.T) {
	m := newMemory()
	for range 2 {
		if !m.reserve("handle", "a") {
			t.Error("a free handle or the claim's own handle is refused")
		}
	}
	if m.reserve("handle", "b") {
		t.Error("a reserved handle is given to another claim")
	}
	m.release("handle")
	if !m.reserve("handle", "b") {
		t.Error("a handle that was released is refused")
	}
}
