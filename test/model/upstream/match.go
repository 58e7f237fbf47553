package upstream

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// bestMatch returns the volume that the binder binds to a claim without volumeName, nil for
// none. Volumes with the fewest access modes are preferred; among these a volume that names
// the claim, then the smallest. Only the scheduler selects a free volume for a delayed claim.
func bestMatch(volumes []*v1.PersistentVolume, claim *v1.PersistentVolumeClaim, delayed bool) *v1.PersistentVolume {
	slices.SortStableFunc(volumes, func(a, b *v1.PersistentVolume) int {
		return cmp.Or(cmp.Compare(len(a.Spec.AccessModes), len(b.Spec.AccessModes)), capacityOf(a).Cmp(*capacityOf(b)))
	})
	var best *v1.PersistentVolume
	for _, volume := range volumes {
		switch {
		case best != nil && len(volume.Spec.AccessModes) > len(best.Spec.AccessModes):
			return best
		case !offers(volume, claim) || volume.DeletionTimestamp != nil || sizeOf(claim).Cmp(*capacityOf(volume)) > 0:
		case refersTo(volume, claim):
			return volume
		case best == nil && !delayed && volume.Spec.ClaimRef == nil && isFree(volume, claim):
			best = volume
		}
	}
	return best
}

// refersTo reports whether the claimRef of the volume names the claim, with its UID or none.
func refersTo(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace &&
		(ref.UID == "" || ref.UID == claim.UID)
}

// satisfies reports whether the volume that a claim names can be bound to the claim.
func satisfies(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return volume.DeletionTimestamp == nil && offers(volume, claim) &&
		sizeOf(claim).Value() <= capacityOf(volume).Value() && storage.VolumeClass(volume) == storage.ClaimClass(claim)
}

// offers reports whether the volume has the volume mode and the access modes of the claim.
func offers(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) {
			return false
		}
	}
	return sameMode(volume, claim)
}

func sameMode(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	return storage.ModeOf(volume.Spec.VolumeMode) == storage.ModeOf(claim.Spec.VolumeMode)
}

func isFree(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	if volume.Status.Phase != v1.VolumeAvailable || storage.VolumeClass(volume) != storage.ClaimClass(claim) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	return claim.Spec.Selector == nil || err == nil && selector.Matches(labels.Set(volume.Labels))
}
