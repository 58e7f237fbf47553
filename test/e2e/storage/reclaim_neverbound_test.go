package storage

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// madeFor makes a volume look provisioned by the driver for the claim.
func madeFor(s *harness.Session, claim *v1.PersistentVolumeClaim) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: s.Driver.DriverName}
		v.Finalizers = []string{string(finalizer.External)}
		v.Spec.StorageClassName = *claim.Spec.StorageClassName
		v.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace,
			Name: claim.Name, UID: claim.UID}
	}
}

func TestVolumeDeletedBeforeBindingIsReplaced(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	claim := s.CreateClaim("claim", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("2Mi") // more than the volume has, so that they never bind
	})
	first := s.CreateVolume(s.CreateStoredVolume("first"), v1.PersistentVolumeReclaimDelete, madeFor(s, claim))
	s.PassQueues()
	s.DeleteVolume(first.Name)
	s.AwaitVolumeGone(first.Name)
	s.ExpectReclaimed(first)
	s.AwaitEvent(claim, string(binding.NeverBoundVolume))
	class := harness.NewClass(s.Namespace, s.Driver.DriverName, v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingImmediate)
	s.CreateStorageClass(class)
	if second := s.AwaitBound("claim"); !s.IsStored(harness.Handle(second)) {
		t.Errorf("the claim is bound to %s, which the storage system does not have", harness.Handle(second))
	}
}

func TestStaticVolumeDeletedBeforeBindingKeepsItsData(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	claim := s.CreateClaim("claim", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("2Mi")
	})
	volume := s.CreateVolume(s.CreateStoredVolume("static"), v1.PersistentVolumeReclaimDelete, madeFor(s, claim),
		func(v *v1.PersistentVolume) {
			v.Annotations, v.Finalizers = nil, nil
		})
	s.PassQueues()
	s.DeleteVolume(volume.Name)
	s.AwaitVolumeGone(volume.Name)
	expectKept(s, volume)
}
