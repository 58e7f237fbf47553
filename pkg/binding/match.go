package binding

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Mismatch says why a volume cannot serve a claim that asks for it by name, as
// the end of a sentence; it is "" if it can.
func Mismatch(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) string {
	switch {
	case volume.DeletionTimestamp != nil:
		return "the volume is marked for deletion"
	case capacity(volume).Cmp(request(claim)) < 0:
		return "requested PV is too small"
	case storage.VolumeClass(volume) != storage.ClaimClass(claim):
		return "storageClassName does not match"
	case !sameAttributesClass(volume, claim):
		return "volumeAttributesClassName does not match"
	case !SameMode(volume, claim):
		return "incompatible volumeMode"
	case !offersModes(volume.Spec.AccessModes, claim.Spec.AccessModes):
		return "incompatible accessMode, the volume lacks one that the claim requests"
	}
	return ""
}

// Reserved returns the volume that refers to the claim and can serve it, nil if
// there is none. Volumes are those whose claimRef has the claim's name; class and
// selector do not matter, for whoever wrote the reference chose on purpose.
func Reserved(volumes []*v1.PersistentVolume, claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	var best *v1.PersistentVolume
	for _, volume := range volumes {
		fits := RelationOf(volume, claim).refersToClaim() && takeable(volume) &&
			capacity(volume).Cmp(request(claim)) >= 0 && SameMode(volume, claim) &&
			sameAttributesClass(volume, claim) && offersModes(volume.Spec.AccessModes, claim.Spec.AccessModes)
		if fits && (best == nil || before(volume, best)) {
			best = volume
		}
	}
	return best
}

// takeable says whether a volume that refers to a claim may still be bound to it.
// One that says Bound may even if it is being deleted: the binding had begun.
func takeable(volume *v1.PersistentVolume) bool {
	begun := volume.Status.Phase == v1.VolumeBound && volume.Spec.ClaimRef.UID != ""
	return volume.DeletionTimestamp == nil || begun
}

// before orders candidates: one that names the claim's UID comes first, then the
// smaller one, then by name.
func before(a, b *v1.PersistentVolume) bool {
	if aUID, bUID := a.Spec.ClaimRef.UID != "", b.Spec.ClaimRef.UID != ""; aUID != bUID {
		return aUID
	}
	if order := capacity(a).Cmp(*capacity(b)); order != 0 {
		return order < 0
	}
	return a.Name < b.Name
}

// SameMode says whether both are block devices or both are file systems.
func SameMode(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return ptr.Deref(volume.Spec.VolumeMode, v1.PersistentVolumeFilesystem) == ptr.Deref(claim.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
}

func sameAttributesClass(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return ptr.Deref(volume.Spec.VolumeAttributesClassName, "") == ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}

func offersModes(offered, requested []v1.PersistentVolumeAccessMode) bool {
	for _, mode := range requested {
		if !slices.Contains(offered, mode) {
			return false
		}
	}
	return true
}

func capacity(volume *v1.PersistentVolume) *resource.Quantity {
	return volume.Spec.Capacity.Storage()
}

func request(claim *v1.PersistentVolumeClaim) resource.Quantity {
	return *claim.Spec.Resources.Requests.Storage()
}
