package upstream

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// stock is the pair of programs that a cluster runs without ours. The README names these
// tests: one that fails shows that upstream has repaired the case.
var stock = harness.Setup{UpstreamLoops: true, UpstreamSidecar: true}

func TestStockLeaksVolumeDeletedBeforeItsFinalizer(t *testing.T) {
	s := harness.Join(t, stock)
	s.CreateVolume(s.CreateStoredVolume("late"), v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	s.PassQueues()
	if calls := s.CountCalls("DeleteVolume", harness.Handle(volume)); calls > 0 || !s.IsStored(harness.Handle(volume)) {
		t.Errorf("upstream reclaims %s now: %d calls of DeleteVolume", volume.Name, calls)
	}
}

func TestStockDeletesDataOfTheOtherVolume(t *testing.T) {
	s := harness.Join(t, stock)
	shared := s.CreateStoredVolume("shared")
	for _, name := range []string{"mine", "yours"} {
		s.CreateVolume(shared, v1.PersistentVolumeReclaimDelete,
			func(v *v1.PersistentVolume) { v.Name = s.Namespace + "-" + name })
		s.CreateClaim(name, s.Namespace)
		s.AwaitBound(name)
	}
	mine := s.AwaitBound("mine")
	s.DeleteClaim("mine")
	s.AwaitVolumeGone(mine.Name)
	s.AwaitBound("yours")
	if s.IsStored(shared) {
		t.Errorf("upstream keeps %s now, which claim yours is bound to", shared)
	}
}

func TestStockLeavesAvailableVolumeTerminating(t *testing.T) {
	s := harness.Join(t, stock)
	volume := s.CreateVolume(s.CreateStoredVolume("free"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Finalizers = []string{string(finalizer.External)}
	})
	s.AwaitVolume(volume.Name, "is Available",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
	s.DeleteVolume(volume.Name)
	s.AwaitVolume(volume.Name, "has lost pv-protection", func(v *v1.PersistentVolume) bool {
		return !finalizer.Has(v.Finalizers, finalizer.VolumeProtection)
	})
	s.PassQueues()
	s.AwaitVolume(volume.Name, "is Terminating with the finalizer", func(v *v1.PersistentVolume) bool {
		return v.DeletionTimestamp != nil && finalizer.Has(v.Finalizers, finalizer.External)
	})
}

func TestStockLeavesFailedVolumeBehind(t *testing.T) {
	s := harness.Join(t, stock)
	s.CreateVolume(s.CreateStoredVolume("failed"), v1.PersistentVolumeReclaimRecycle)
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.DeleteClaim("claim")
	failed := func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed }
	s.AwaitVolume(volume.Name, "is Failed", failed)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	s.PassQueues()
	s.AwaitVolume(volume.Name, "is Failed with policy Delete", func(v *v1.PersistentVolume) bool {
		return failed(v) && v.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
	})
	if !s.IsStored(harness.Handle(volume)) {
		t.Errorf("upstream reclaims %s now", volume.Name)
	}
}

func TestStockLeavesUnboundVolumeTerminating(t *testing.T) {
	s := harness.Join(t, stock)
	claim := s.CreateClaim("claim", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("2Mi") // larger than the volume, so that it is not bound
	})
	volume := s.CreateVolume(s.CreateStoredVolume("first"), v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) {
			v.Name, v.Finalizers = "pvc-"+string(claim.UID), []string{string(finalizer.External)}
			v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: s.Driver.DriverName}
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		})
	s.PassQueues()
	s.DeleteVolume(volume.Name)
	s.CreateClass()
	s.AwaitClaim("claim", "waits for the provisioner", func(c *v1.PersistentVolumeClaim) bool {
		return c.Annotations[storage.AnnStorageProvisioner] != ""
	})
	s.PassQueues()
	s.AwaitVolume(volume.Name, "is Terminating with the finalizer", func(v *v1.PersistentVolume) bool {
		return v.DeletionTimestamp != nil && finalizer.Has(v.Finalizers, finalizer.External)
	})
	s.AwaitClaim("claim", "is Pending",
		func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimPending })
}

func TestStockDeletesVolumeWithoutItsMissingSecret(t *testing.T) {
	s := harness.Join(t, stock)
	s.CreateVolume(s.CreateStoredVolume("secret"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{
			provision.DeletionSecretName:      "missing",
			provision.DeletionSecretNamespace: s.Namespace,
		}
	})
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	if calls := s.CountCalls("DeleteVolume", harness.Handle(volume)); calls == 0 {
		t.Errorf("upstream waits for the secret of %s now", volume.Name)
	}
}
