package reclaim

import v1 "k8s.io/api/core/v1"

const (
	// RecyclerPrefix starts the names of recycler pods; the rest is the volume's.
	RecyclerPrefix = "recycler-for-"
	// RecyclesAnnotation on a recycler pod of ours says what it was made for: see
	// [RecyclerMark].
	RecyclesAnnotation = "exeunt.io/recycles"
)

// RecyclerName is the name of the pod that recycles the volume.
func RecyclerName(volume *v1.PersistentVolume) string {
	return RecyclerPrefix + volume.Name
}

// RecyclerMark says of which volume a pod removes the data of which claim. The
// success of a pod counts for that claim's data only, not for the next one's.
func RecyclerMark(volume *v1.PersistentVolume) string {
	if volume.Spec.ClaimRef == nil {
		return string(volume.UID)
	}
	return string(volume.UID) + "/" + string(volume.Spec.ClaimRef.UID)
}

// Recycler is what is known of the pod that has the name of a volume's recycler.
type Recycler int

const (
	// NoRecycler: there is no pod of that name.
	NoRecycler Recycler = iota
	// ForeignRecycler: the pod is not ours, or was made for other data; what it
	// says of itself counts for nothing.
	ForeignRecycler
	// RecyclerGoing: the pod is being deleted.
	RecyclerGoing
	// RecyclerRuns: the pod was made for this volume's data and is not finished.
	RecyclerRuns
	// RecyclerSucceeded: it has finished, and the data is gone.
	RecyclerSucceeded
	// RecyclerFailed: it has finished, and the data may be there.
	RecyclerFailed
)

// RecyclerOf says what the pod, nil for none, is to the volume.
func RecyclerOf(pod *v1.Pod, volume *v1.PersistentVolume) Recycler {
	switch {
	case pod == nil:
		return NoRecycler
	case pod.DeletionTimestamp != nil:
		return RecyclerGoing
	case pod.Annotations[RecyclesAnnotation] != RecyclerMark(volume):
		return ForeignRecycler
	case pod.Status.Phase == v1.PodSucceeded:
		return RecyclerSucceeded
	case pod.Status.Phase == v1.PodFailed:
		return RecyclerFailed
	}
	return RecyclerRuns
}

// finished says whether the pod is ours and has come to an end.
func (r Recycler) finished() bool {
	return r == RecyclerSucceeded || r == RecyclerFailed
}

// busy says whether the pod's own event will tell more.
func (r Recycler) busy() bool {
	return r == RecyclerRuns || r == RecyclerGoing
}
