package binding

import v1 "k8s.io/api/core/v1"

// HoldsClaims on a volume is the UID of the claim that the volume was made for. Older
// versions of the provisioner wrote it.
const HoldsClaims = "exeunt.io/holds-claims"

// MadeFor says whether the volume was provisioned for this very claim. One that was
// made for another claim can have been given to this one since, by hand. A volume
// without the annotation tells by its name, or by being no older than the claim.
func MadeFor(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID != claim.UID || volume.Annotations[ProvisionedBy] == "" {
		return false
	}
	if first, annotated := volume.Annotations[HoldsClaims]; annotated {
		return first == string(claim.UID)
	}
	_, chosen := volume.Annotations[BoundByController]
	return volume.Name == ProvisionedName(claim) || !chosen && !volume.CreationTimestamp.Before(&claim.CreationTimestamp)
}

// ProvisionedName is the name of the volume that an in-tree plugin makes for a claim.
func ProvisionedName(claim *v1.PersistentVolumeClaim) string {
	return "pvc-" + string(claim.UID)
}
