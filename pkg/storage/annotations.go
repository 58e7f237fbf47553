package storage

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// Annotations of Kubernetes, with the names of k8s.io/component-helpers/storage/volume.
const (
	// AnnBindCompleted on a claim: the claim was bound once.
	AnnBindCompleted = "pv.kubernetes.io/bind-completed"
	// AnnBoundByController on a claim or volume: a controller, not a user, set the reference
	// to the other object.
	AnnBoundByController = "pv.kubernetes.io/bound-by-controller"
	// AnnDynamicallyProvisioned on a volume: the provisioner that created it.
	AnnDynamicallyProvisioned = "pv.kubernetes.io/provisioned-by"
	// AnnMigratedTo on a claim or volume: the CSI driver that replaces the in-tree plugin.
	AnnMigratedTo = "pv.kubernetes.io/migrated-to"
	// AnnSelectedNode on a claim: the selected node of its first consumer.
	AnnSelectedNode = "volume.kubernetes.io/selected-node"
	// AnnStorageProvisioner on a claim: the provisioner that creates its volume.
	AnnStorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	// AnnBetaStorageProvisioner is the older name; both annotations are written.
	AnnBetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	// AnnPreResizeCapacity on a volume: the capacity in the claim's status until the
	// file system is resized.
	AnnPreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
)

// ClaimClass returns the storage class of a claim, "" for none.
func ClaimClass(claim *v1.PersistentVolumeClaim) string {
	if class, beta := claim.Annotations[v1.BetaStorageClassAnnotation]; beta {
		return class
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// ClassChosen reports whether the claim names a storage class, the empty class included.
func ClassChosen(claim *v1.PersistentVolumeClaim) bool {
	_, beta := claim.Annotations[v1.BetaStorageClassAnnotation]
	return beta || claim.Spec.StorageClassName != nil
}

// VolumeClass returns the storage class of a volume, "" for none.
func VolumeClass(volume *v1.PersistentVolume) string {
	if class, beta := volume.Annotations[v1.BetaStorageClassAnnotation]; beta {
		return class
	}
	return volume.Spec.StorageClassName
}

// NeverBound reports whether the claim was never bound to a volume.
func NeverBound(claim *v1.PersistentVolumeClaim) bool {
	_, completed := claim.Annotations[AnnBindCompleted]
	return claim.Spec.VolumeName == "" && !completed
}

// ClaimProvisioner returns the provisioner that creates the volume of the claim, "" for none.
func ClaimProvisioner(claim *v1.PersistentVolumeClaim) string {
	if name, named := claim.Annotations[AnnStorageProvisioner]; named {
		return name
	}
	return claim.Annotations[AnnBetaStorageProvisioner]
}

// IsDynamic reports whether a provisioner created the volume for a claim.
func IsDynamic(volume *v1.PersistentVolume) bool {
	_, dynamic := volume.Annotations[AnnDynamicallyProvisioned]
	return dynamic
}

// HasProvisioner reports whether the volume names its provisioner. Data is deleted for a
// claim that never used the volume only then: an empty annotation names none.
func HasProvisioner(volume *v1.PersistentVolume) bool {
	return volume.Annotations[AnnDynamicallyProvisioned] != ""
}

// ModeOf returns a volume mode of the API, which is Filesystem by default.
func ModeOf(mode *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	return ptr.Deref(mode, v1.PersistentVolumeFilesystem)
}

// WaitsForFirstConsumer reports whether the class delays binding until a pod uses the claim.
func WaitsForFirstConsumer(class *storagev1.StorageClass) bool {
	return ptr.Deref(class.VolumeBindingMode,
		storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}
