package plugin

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

const (
	// RecyclerPrefix is the start of a recycler pod's name; the volume's name follows.
	RecyclerPrefix = "recycler-for-"
	// RecyclerAnnotation on a recycler pod has the value of [DataID].
	RecyclerAnnotation = "exeunt.io/recycles"
)

// RecyclerName returns the name of the pod that recycles the volume.
func RecyclerName(volume *v1.PersistentVolume) string {
	return RecyclerPrefix + volume.Name
}

// DataID identifies the data of one claim on one volume. The success of a deletion or of a
// recycler pod counts for this data only, not for the data of the next claim.
func DataID(volume *v1.PersistentVolume) string {
	if volume.Spec.ClaimRef == nil {
		return string(volume.UID)
	}
	return string(volume.UID) + "/" + string(volume.Spec.ClaimRef.UID)
}

// RecycledData returns the data that the recycler pod removes, in the form of [DataID]; "" for a pod that was not
// created by us. Each pod of ours names a volume and a claim.
func RecycledData(pod *v1.Pod) string {
	data := pod.Annotations[RecyclerAnnotation]
	volume, claim, both := strings.Cut(data, "/")
	if !both || volume == "" || claim == "" || strings.Contains(claim, "/") {
		return ""
	}
	return data
}

// Recycler is the state of the pod with the name of a volume's recycler pod.
type Recycler int

const (
	// RecyclerNone: no pod has the name.
	RecyclerNone Recycler = iota
	// RecyclerForeign: the pod was not created by us. Its phase counts for nothing.
	RecyclerForeign
	// RecyclerOutdated: the pod was created for other data: of an earlier claim, or of an earlier
	// volume of the name. While it runs, it removes data that are not meant to go.
	RecyclerOutdated
	// RecyclerDeleting: the pod is being deleted.
	RecyclerDeleting
	// RecyclerRunning: the pod has not finished.
	RecyclerRunning
	// RecyclerSucceeded: the pod has finished, and the data is gone.
	RecyclerSucceeded
	// RecyclerFailed: the pod has finished, and the data may exist.
	RecyclerFailed
	// RecyclerForbidden: the API server forbids to read the pod.
	RecyclerForbidden
)

// RecyclerOf returns the state of the pod, nil for no pod.
func RecyclerOf(pod *v1.Pod, volume *v1.PersistentVolume) Recycler {
	switch {
	case pod == nil:
		return RecyclerNone
	case pod.DeletionTimestamp != nil:
		return RecyclerDeleting
	case RecycledData(pod) == "":
		return RecyclerForeign
	case RecycledData(pod) != DataID(volume):
		return RecyclerOutdated
	case pod.Status.Phase == v1.PodSucceeded:
		return RecyclerSucceeded
	case pod.Status.Phase == v1.PodFailed:
		return RecyclerFailed
	}
	return RecyclerRunning
}

// Scrubs reports whether the pod with the name of a recycler pod, nil for none, may remove data.
// A pod that was not created by us counts only while it is being deleted: nothing else ends it.
func Scrubs(pod *v1.Pod) bool {
	switch {
	case pod == nil || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		return false
	case pod.DeletionTimestamp != nil:
		return true
	}
	return RecycledData(pod) != ""
}

// String returns the name of the value.
func (r Recycler) String() string {
	return enum.Name(r, "None", "Foreign", "Outdated", "Deleting", "Running", "Succeeded", "Failed", "Forbidden")
}

// isFinished reports whether the pod is ours and has finished.
func (r Recycler) isFinished() bool {
	return r == RecyclerSucceeded || r == RecyclerFailed
}

// isUnfinished reports whether an event of the pod will follow.
func (r Recycler) isUnfinished() bool {
	return r == RecyclerRunning || r == RecyclerDeleting
}
