package provisioning

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The first write of a PersistentVolume has no answer, the second succeeds, and a user deletes the
// volume before the claim is bound. If the disk is deleted at once, the first write can record the
// deleted disk for the claim, which is then bound to a PersistentVolume without a disk.
func TestDeletionAwaitsOpenWriteOfVolumeOfWaitingClaim(t *testing.T) {
	f := newFlow(t)
	f.Timeouts.OpenWrite = DefaultTimeouts.OpenWrite
	f.failNext("create", "persistentvolumes", false)
	f.reconcile(true)
	f.reconcile(false)
	f.expect(1, 1, anyNumber, 0)
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	if _, err := f.RemoveEntry(t.Context(), volume); err == nil {
		t.Error("the disk may be deleted while a write of its PersistentVolume may still take effect")
	}
}
