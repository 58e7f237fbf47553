package binding

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Mismatch returns why a volume does not fit a claim that names the volume, as the end of a
// sentence, or "" for a volume that fits.
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

// ReservedVolume returns the volume that refers to the claim and fits, nil for none, of the
// volumes whose claimRef has the name of the claim. Class and selector do not matter, because
// somebody chose the claim on purpose.
func ReservedVolume(volumes []*v1.PersistentVolume, claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	var best *v1.PersistentVolume
	for _, volume := range volumes {
		fits := RelationOf(volume, claim).refersToClaim() && canStillBind(volume) &&
			capacity(volume).Cmp(request(claim)) >= 0 && SameMode(volume, claim) &&
			sameAttributesClass(volume, claim) && offersModes(volume.Spec.AccessModes, claim.Spec.AccessModes)
		if fits && (best == nil || isBetter(volume, best)) {
			best = volume
		}
	}
	return best
}

// canStillBind reports whether a volume that refers to a claim can be bound to the claim. A
// volume that is being deleted can if its phase is Bound: the binding had begun.
func canStillBind(volume *v1.PersistentVolume) bool {
	begun := volume.Status.Phase == v1.VolumeBound && volume.Spec.ClaimRef.UID != ""
	return volume.DeletionTimestamp == nil || begun
}

// isBetter reports whether a is the better volume: the volume with the UID of the claim,
// then the smaller volume, then the first by name.
func isBetter(a, b *v1.PersistentVolume) bool {
	if aUID, bUID := a.Spec.ClaimRef.UID != "", b.Spec.ClaimRef.UID != ""; aUID != bUID {
		return aUID
	}
	if order := capacity(a).Cmp(*capacity(b)); order != 0 {
		return order < 0
	}
	return a.Name < b.Name
}

// SameMode reports whether volume and claim have the same volume mode.
func SameMode(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return storage.ModeOf(volume.Spec.VolumeMode) == storage.ModeOf(claim.Spec.VolumeMode)
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
	bytes := wholeBytes(volume.Spec.Capacity.Storage())
	return &bytes
}

func request(claim *v1.PersistentVolumeClaim) resource.Quantity {
	return wholeBytes(claim.Spec.Resources.Requests.Storage())
}

// wholeBytes returns the quantity rounded up to whole bytes, as in the request that a CSI driver gets.
// Quantity.Value would be 0 for 1e30.
func wholeBytes(quantity *resource.Quantity) resource.Quantity {
	rounded := quantity.DeepCopy()
	rounded.RoundUp(0)
	return rounded
}
