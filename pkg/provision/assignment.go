package provision

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Assignment are the fields of a PersistentVolume that do not depend on the storage
// system: which claim and class it was created for, and by which provisioner.
type Assignment struct {
	ClaimRef    *v1.ObjectReference
	Class       string
	Provisioner string
}

// NewAssignment returns the assignment of a new volume.
func NewAssignment(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) Assignment {
	return Assignment{
		ClaimRef: &v1.ObjectReference{
			Kind: "PersistentVolumeClaim", APIVersion: "v1",
			Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
		},
		Class:       storage.ClaimClass(claim),
		Provisioner: class.Provisioner,
	}
}

// AssignmentOf returns the assignment of an existing volume.
func AssignmentOf(volume *v1.PersistentVolume) Assignment {
	return Assignment{
		ClaimRef: volume.Spec.ClaimRef, Class: volume.Spec.StorageClassName,
		Provisioner: volume.Annotations[storage.AnnDynamicallyProvisioned],
	}
}

// ApplyTo sets the fields of the volume. With honor (the gate HonorPVReclaimPolicy) and
// the reclaim policy Delete, the volume carries the finalizer External from its first
// write on (KEP-2644, "CSI Driver volumes").
func (a Assignment) ApplyTo(volume *v1.PersistentVolume, honor bool) {
	volume.Spec.ClaimRef = a.ClaimRef.DeepCopy()
	volume.Spec.StorageClassName = a.Class
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, a.Provisioner)
	if honor && volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete {
		volume.Finalizers = finalizer.With(volume.Finalizers, finalizer.External)
	} else {
		volume.Finalizers = finalizer.Without(volume.Finalizers, finalizer.External)
	}
}
