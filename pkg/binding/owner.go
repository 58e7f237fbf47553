package binding

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Owner returns the claim that was bound to a volume whose claimRef is missing: of the claims that name the volume and
// have the annotation bind-completed, a Bound one, then the oldest; nil for none. A replaced volume loses its claimRef,
// but the data of this claim is on it.
func Owner(volume *v1.PersistentVolume, claims []*v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	if volume.Spec.ClaimRef != nil {
		return nil
	}
	var owner *v1.PersistentVolumeClaim
	for _, claim := range claims {
		_, completed := claim.Annotations[storage.AnnBindCompleted]
		if completed && claim.Spec.VolumeName == volume.Name && (owner == nil || ownsRather(claim, owner)) {
			owner = claim
		}
	}
	return owner
}

// ownsRather reports whether the volume belongs to claim a rather than to claim b. A user may write the annotation, but
// not the status.
func ownsRather(a, b *v1.PersistentVolumeClaim) bool {
	if aBound, bBound := a.Status.Phase == v1.ClaimBound, b.Status.Phase == v1.ClaimBound; aBound != bBound {
		return aBound
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
