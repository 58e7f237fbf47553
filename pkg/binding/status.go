package binding

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// StatusOf compares the status of the claim with the status that its phase requires. The
// volume is the claim's, nil if there is none.
func StatusOf(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) Status {
	status := &claim.Status
	empty := status.AccessModes == nil && status.Capacity == nil && status.CurrentVolumeAttributesClassName == nil
	switch {
	case status.Phase == v1.ClaimPending && empty:
		return StatusPending
	case status.Phase == v1.ClaimLost && empty:
		return StatusLost
	case status.Phase == v1.ClaimBound && volume != nil && slices.Equal(status.AccessModes, volume.Spec.AccessModes):
		return StatusBound
	}
	return OtherStatus
}

// StatusWithoutVolume returns the status of a claim in a phase without a volume: Pending
// or Lost.
func StatusWithoutVolume(claim *v1.PersistentVolumeClaim,
	phase v1.PersistentVolumeClaimPhase) *v1.PersistentVolumeClaimStatus {
	status := claim.Status.DeepCopy()
	status.Phase, status.AccessModes, status.Capacity, status.CurrentVolumeAttributesClassName = phase, nil, nil, nil
	return status
}

// BoundStatus returns the status of a claim that is bound to the volume. Capacity and
// attributes class are set only when the claim becomes Bound: later they belong to the
// resizer.
func BoundStatus(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) *v1.PersistentVolumeClaimStatus {
	status := claim.Status.DeepCopy()
	status.AccessModes = volume.Spec.AccessModes
	if status.Phase != v1.ClaimBound {
		status.Capacity = claimCapacity(volume)
	}
	if status.Phase == v1.ClaimPending {
		status.CurrentVolumeAttributesClassName = volume.Spec.VolumeAttributesClassName
	}
	status.Phase = v1.ClaimBound
	return status
}

// claimCapacity returns the capacity that the claim's status shows: the capacity before
// a resize that is under way, if the volume names it.
func claimCapacity(volume *v1.PersistentVolume) v1.ResourceList {
	before, err := resource.ParseQuantity(volume.Annotations[storage.AnnPreResizeCapacity])
	if err != nil {
		return volume.Spec.Capacity
	}
	return v1.ResourceList{v1.ResourceStorage: before}
}
