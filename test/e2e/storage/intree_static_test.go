package storage

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestMigratedStaticVolumeIsLeftToItsDriver(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := s.CreateVolume("disk", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	})
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.DeleteClaim("claim")
	released := s.AwaitVolume(volume.Name, "is released", harness.IsReleased)
	if driver := released.Annotations[storage.AnnMigratedTo]; driver != "pd.csi.storage.gke.io" {
		t.Errorf("the volume is annotated as migrated to %q", driver)
	}
	s.PassQueues()
	s.AwaitVolume(volume.Name, "stays released", harness.IsReleased)
}

func TestInTreeVolumeWithoutDeleterFails(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/rbd"}
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/nowhere"}}
	})
	s.CreateClaim("claim", s.Namespace)
	bound := s.AwaitBound("claim")
	if finalizer.Has(bound.Finalizers, finalizer.InTree) {
		t.Errorf("a finalizer was added that no program removes: %v", bound.Finalizers)
	}
	s.DeleteClaim("claim")
	s.AwaitVolume(volume.Name, "has failed",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed && v.Status.Message != "" })
	s.AwaitEvent(volume, "VolumeFailedDelete")
}
