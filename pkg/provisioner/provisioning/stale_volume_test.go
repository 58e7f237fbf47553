package provisioning

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// The claim's first PersistentVolume was deleted and the volume requested again. The cache of the next
// leader still has the first one.
func TestDeletedVolumeInStaleCacheRecordsNothing(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.deleteClaim()
	f.terms++
	f.restart()
	stale := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid", UID: "first"},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName,
				VolumeHandle: "first"}},
		}}
	f.must(f.Volumes.GetStore().Add(stale))
	if err := f.Reconcile(t.Context(), flowClaim); !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("Reconcile = %v, want %v", err, controller.ErrStaleCache)
	}
	f.expect(1, 0, 1, 1)
	if removed, err := f.RemoveEntry(t.Context(), stale); removed || !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("RemoveEntry = %v, %v, want %v", removed, err, controller.ErrStaleCache)
	}
	f.expect(1, 0, 1, 1)
	f.must(f.Volumes.GetStore().Delete(stale))
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
}
