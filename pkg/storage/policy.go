package storage

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Policy is the reclaim policy of a volume.
type Policy int

const (
	// PolicyUnknown is any value that this version does not know. It never leads to a write.
	PolicyUnknown Policy = iota
	// PolicyRetain keeps volume and data.
	PolicyRetain
	// PolicyRecycle scrubs the data and makes the volume available again.
	PolicyRecycle
	// PolicyDelete deletes volume and data.
	PolicyDelete
)

// PolicyOf returns the value of a reclaim policy of the API.
func PolicyOf(policy v1.PersistentVolumeReclaimPolicy) Policy {
	switch policy {
	case v1.PersistentVolumeReclaimRetain:
		return PolicyRetain
	case v1.PersistentVolumeReclaimRecycle:
		return PolicyRecycle
	case v1.PersistentVolumeReclaimDelete:
		return PolicyDelete
	}
	return PolicyUnknown
}

// String returns the name of the value.
func (p Policy) String() string { return enum.Name(p, "Unknown", "Retain", "Recycle", "Delete") }
