package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestAStaticVolumeOfAMigratedPluginIsLeftToItsDriver(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.createVolume("disk", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	})
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.deleteClaim("claim")
	released := s.awaitVolume(volume.Name, "is released", isReleased)
	if driver := released.Annotations[storage.AnnMigratedTo]; driver != "pd.csi.storage.gke.io" {
		t.Errorf("the volume is migrated to %q, want the driver of its plugin", driver)
	}
	s.passQueues()
	s.awaitVolume(volume.Name, "stays released", isReleased)
}

func TestAnInTreeVolumeThatNobodyCanDeleteIsFailedAndKept(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/rbd"}
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/nowhere"}}
	})
	s.createClaim("claim", s.namespace)
	bound := s.awaitBound("claim")
	if finalizer.Has(bound.Finalizers, finalizer.InTree) {
		t.Errorf("a finalizer that nobody could remove was added: %v", bound.Finalizers)
	}
	s.deleteClaim("claim")
	s.awaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed && v.Status.Message != "" })
	s.awaitEvent(volume, "VolumeFailedDelete")
}
