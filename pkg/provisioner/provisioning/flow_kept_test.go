package provisioning

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Without the finalizer on the PersistentVolume, its user may have removed it, and kept
// the volume, while no provisioner ran.
func TestVolumeWithoutFinalizerIsNotRecordedAgain(t *testing.T) {
	f := newFlow(t)
	f.Honor = false
	f.fail("create", "persistentvolumes", true)
	f.step(true)
	f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
	f.vanish()
	f.terms++
	f.restart()
	f.again(false)
	f.expect(1, 0, 1, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}
