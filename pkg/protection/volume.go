package protection

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// VolumeAction is the next step for one volume.
type VolumeAction int

const (
	// KeepVolume changes nothing.
	KeepVolume VolumeAction = iota
	// ProtectVolume adds the finalizer.
	ProtectVolume
	// UnprotectVolume removes the finalizer.
	UnprotectVolume
)

// String returns the name of the value.
func (a VolumeAction) String() string {
	return enum.Name(a, "KeepVolume", "ProtectVolume", "UnprotectVolume")
}

// VolumeState is the state of one volume.
type VolumeState struct {
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: the volume has the finalizer.
	Protected bool
	// Bound: the phase is Bound, or about to be.
	Bound bool
	// AwaitsReclaim: the volume is still to be reclaimed, and the finalizer of its
	// reclaimer is missing.
	AwaitsReclaim bool
	// Reclaiming: the volume is Released or Failed with policy Delete, and the finalizer of
	// its provisioner keeps it until its data is gone.
	Reclaiming bool
}

// VolumeStateOf returns the state of a volume in the phase: its own, or the phase about
// to be written.
func VolumeStateOf(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase, awaitsReclaim bool) VolumeState {
	return VolumeState{
		Deleting:      volume.DeletionTimestamp != nil,
		Protected:     finalizer.Has(volume.Finalizers, finalizer.VolumeProtection),
		Bound:         phase == v1.VolumeBound,
		AwaitsReclaim: awaitsReclaim,
		Reclaiming: (phase == v1.VolumeReleased || phase == v1.VolumeFailed) &&
			volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete &&
			finalizer.Has(volume.Finalizers, finalizer.External),
	}
}

// RemovesWithPhase reports whether the write of the phase also removes pv-protection, so
// that no released volume is still protected. A volume that its provisioner is about to
// delete loses it before it has a deletion timestamp: then the provisioner is the only one
// that writes the finalizers of the deleted volume, and no write conflicts.
func RemovesWithPhase(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase, awaitsReclaim bool) bool {
	state := VolumeStateOf(volume, phase, awaitsReclaim)
	state.Deleting = state.Deleting || state.Reclaiming
	return DecideVolume(state) == UnprotectVolume
}

// DecideVolume returns the next step for one volume. AwaitsReclaim keeps a volume that was deleted
// before it got the finalizer of its driver or plugin: pv-protection is then all that keeps the
// object, and without the object nobody deletes the disk.
func DecideVolume(s VolumeState) VolumeAction {
	switch {
	case !s.Deleting && !s.Protected && !s.Reclaiming:
		return ProtectVolume
	case s.Deleting && s.Protected && !s.Bound && !s.AwaitsReclaim:
		return UnprotectVolume
	}
	return KeepVolume
}
