package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// madeFor lets a volume look as if the driver had made it for the claim.
func (s *scene) madeFor(claim *v1.PersistentVolumeClaim) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: s.driver.DriverName}
		v.Finalizers = []string{string(finalizer.External)}
		v.Spec.StorageClassName = *claim.Spec.StorageClassName
		v.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	}
}

func TestAVolumeDeletedBeforeItWasBoundIsReclaimedAndTheClaimGetsAnother(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	claim := s.createClaim("claim", s.namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("2Mi") // more than the volume has, so that it is never bound
	})
	first := s.createVolume(s.makeVolume("first"), v1.PersistentVolumeReclaimDelete, s.madeFor(claim))
	s.passQueues()
	s.deleteVolume(first.Name)
	s.awaitVolumeGone(first.Name)
	s.expectReclaimed(first)
	s.awaitEvent(claim, string(binding.NeverBoundVolume))
	class := newClass(s.namespace, s.driver.DriverName, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
	s.must(err, "create class")
	if second := s.awaitBound("claim"); !s.stored(handle(second)) {
		t.Errorf("the claim is bound to %s, which the driver does not know", handle(second))
	}
}

func TestAVolumeOfAPersonThatIsDeletedBeforeItWasBoundKeepsItsData(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	claim := s.createClaim("claim", s.namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("2Mi")
	})
	volume := s.createVolume(s.makeVolume("static"), v1.PersistentVolumeReclaimDelete, s.madeFor(claim), func(v *v1.PersistentVolume) {
		v.Annotations, v.Finalizers = nil, nil
	})
	s.passQueues()
	s.deleteVolume(volume.Name)
	s.awaitVolumeGone(volume.Name)
	s.expectKept(volume)
}
