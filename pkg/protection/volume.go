package protection

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// VolumeStateOf returns the state of a volume in the phase: its own, or the phase about
// to be written.
func VolumeStateOf(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase, awaitsReclaim bool) VolumeState {
	return VolumeState{
		Deleting:      volume.DeletionTimestamp != nil,
		Protected:     finalizer.Has(volume.Finalizers, finalizer.VolumeProtection),
		Bound:         phase == v1.VolumeBound,
		AwaitsReclaim: awaitsReclaim,
	}
}
