package waiting

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// ClaimReference returns the reference to the claim for events.
func ClaimReference(claim *v1.PersistentVolumeClaim) v1.ObjectReference {
	return v1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}

// VolumeReference returns the reference to the volume for events.
func VolumeReference(volume *v1.PersistentVolume) v1.ObjectReference {
	return v1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolume",
		Name: volume.Name, UID: volume.UID, ResourceVersion: volume.ResourceVersion,
	}
}

// ClaimSince returns when the claim was deleted, zero for a claim that is not deleted.
func ClaimSince(claim *v1.PersistentVolumeClaim) time.Time {
	if claim.DeletionTimestamp == nil {
		return time.Time{}
	}
	return claim.DeletionTimestamp.Time
}

// VolumeSince returns when the volume was deleted or released, whichever was first; zero if
// unknown.
func VolumeSince(volume *v1.PersistentVolume) time.Time {
	var since time.Time
	if volume.DeletionTimestamp != nil {
		since = volume.DeletionTimestamp.Time
	}
	released := volume.Status.LastPhaseTransitionTime
	if released != nil && storage.PhaseOf(volume.Status.Phase).Released() &&
		(since.IsZero() || released.Time.Before(since)) {
		since = released.Time
	}
	return since
}
