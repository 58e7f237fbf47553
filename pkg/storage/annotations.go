package storage

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Annotations by which the components of Kubernetes agree on bindings.
const (
	// AnnBindCompleted on a claim: it was bound once.
	AnnBindCompleted = "pv.kubernetes.io/bind-completed"
	// AnnBoundByController on either object: the reference to the other was set by a
	// controller, not by a user.
	AnnBoundByController = "pv.kubernetes.io/bound-by-controller"
	// AnnDynamicallyProvisioned on a volume: the provisioner that made it.
	AnnDynamicallyProvisioned = "pv.kubernetes.io/provisioned-by"
	// AnnMigratedTo on either object: the CSI driver that serves the in-tree plugin.
	AnnMigratedTo = "pv.kubernetes.io/migrated-to"
	// AnnSelectedNode on a claim: the node that the scheduler chose for its consumer.
	AnnSelectedNode = "volume.kubernetes.io/selected-node"
	// AnnStorageProvisioner on a claim: the provisioner that is asked for a volume.
	AnnStorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	// AnnBetaStorageProvisioner is the older name, which is written beside it.
	AnnBetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	// AnnPreResizeCapacity on a volume: the capacity that the claim's status shows
	// until the file system has been resized.
	AnnPreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
)

// ClaimClass returns the class that a claim asks for, "" for none.
func ClaimClass(claim *v1.PersistentVolumeClaim) string {
	if class, beta := claim.Annotations[v1.BetaStorageClassAnnotation]; beta {
		return class
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// ClassChosen says whether the claim's author chose a class, the empty one included.
func ClassChosen(claim *v1.PersistentVolumeClaim) bool {
	_, beta := claim.Annotations[v1.BetaStorageClassAnnotation]
	return beta || claim.Spec.StorageClassName != nil
}

// VolumeClass returns the class of a volume, "" for none.
func VolumeClass(volume *v1.PersistentVolume) string {
	if class, beta := volume.Annotations[v1.BetaStorageClassAnnotation]; beta {
		return class
	}
	return volume.Spec.StorageClassName
}

// NeverBound says whether the claim was never bound to any volume.
func NeverBound(claim *v1.PersistentVolumeClaim) bool {
	_, completed := claim.Annotations[AnnBindCompleted]
	return claim.Spec.VolumeName == "" && !completed
}

// ClaimProvisioner returns the provisioner that is asked for the claim's volume, "" for none.
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
