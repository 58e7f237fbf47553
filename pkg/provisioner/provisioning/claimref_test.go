package provisioning

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// A process crashes before it removes the entry of a recorded volume. A user gives the volume
// the claimRef of another claim, and the volume is deleted.
func TestEntryOfVolumeWithOtherClaimRefBecomesUnresolved(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", true)
	f.reconcile(true)
	f.deleteClaim()
	volumes := f.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	volume.Spec.ClaimRef.UID, volume.Status.Phase = "other", v1.VolumeReleased
	volume, err = volumes.Update(t.Context(), volume, metav1.UpdateOptions{})
	f.must(err)
	f.terms++
	f.restart()
	f.must(f.deletions.Reconcile(t.Context(), "pvc-uid"))
	f.expect(0, 0, 1, 1)
	f.must(f.Volumes.GetStore().Delete(volume))
	f.volumeGone(volume)
	f.reconcileDeleted(false)
	f.reconcileDeleted(false)
	f.expect(0, 0, 1, 0)
	if left := f.entries(journal.KindUnresolved); len(left) != 1 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

func TestClaimRefOfOtherVolumeRemovesNoEntry(t *testing.T) {
	f := newFlow(t)
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"}}}
	if removed, err := f.RemoveEntry(t.Context(), other); removed || err != nil ||
		len(f.entries(journal.KindActive)) != 1 {
		t.Errorf("RemoveEntry = %v, %v, entries: %+v", removed, err, f.entries(journal.KindActive))
	}
}
