package provisioning

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// A PersistentVolume without the finalizer: while no provisioner ran, the user may have
// removed the PersistentVolume and kept the volume.
func TestVolumeWithoutFinalizerIsNotRecordedAgain(t *testing.T) {
	f := newFlow(t)
	f.Honor = false
	f.failNext("create", "persistentvolumes", true)
	f.reconcile(true)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.deleteClaim()
	f.terms++
	f.restart()
	f.reconcileDeleted(false)
	f.expect(1, 0, 1, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}
