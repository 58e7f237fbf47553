package binding

import v1 "k8s.io/api/core/v1"

// Annotations by which the components of Kubernetes agree on bindings.
const (
	// BindCompleted on a claim: it was bound once.
	BindCompleted = "pv.kubernetes.io/bind-completed"
	// BoundByController on either object: the reference to the other was set by a
	// controller, not by a user.
	BoundByController = "pv.kubernetes.io/bound-by-controller"
	// ProvisionedBy on a volume: the provisioner that made it.
	ProvisionedBy = "pv.kubernetes.io/provisioned-by"
	// MigratedTo on either object: the CSI driver that serves the in-tree plugin.
	MigratedTo = "pv.kubernetes.io/migrated-to"
	// SelectedNode on a claim: the node that the scheduler chose for its consumer.
	SelectedNode = "volume.kubernetes.io/selected-node"
	// StorageProvisioner on a claim: the provisioner that is asked for a volume.
	StorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	// BetaStorageProvisioner is the older name, which is written beside it.
	BetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	// PreResizeCapacity on a volume: the capacity that the claim's status shows
	// until the file system has been resized.
	PreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
)

// ClaimClass returns the class that a claim asks for, "" for none.
func ClaimClass(claim *v1.PersistentVolumeClaim) string {
	if class, beta := claim.Annotations[v1.BetaStorageClassAnnotation]; beta {
		return class
	}
	return deref(claim.Spec.StorageClassName, "")
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
	_, completed := claim.Annotations[BindCompleted]
	return claim.Spec.VolumeName == "" && !completed
}

func deref[T any](pointer *T, otherwise T) T {
	if pointer == nil {
		return otherwise
	}
	return *pointer
}
