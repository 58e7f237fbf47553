package storage

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Phase is the phase of a volume.
type Phase int

const (
	// PhasePending: the volume was just created, or has no phase yet.
	PhasePending Phase = iota
	// PhaseAvailable: no claim is bound to the volume.
	PhaseAvailable
	// PhaseBound: a claim is bound to the volume.
	PhaseBound
	// PhaseReleased: the claim is gone, and the volume is not reclaimed yet.
	PhaseReleased
	// PhaseFailed: the volume is released, and reclaiming it failed.
	PhaseFailed
)

// PhaseOf returns the value of a volume phase of the API.
func PhaseOf(phase v1.PersistentVolumePhase) Phase {
	switch phase {
	case v1.VolumeAvailable:
		return PhaseAvailable
	case v1.VolumeBound:
		return PhaseBound
	case v1.VolumeReleased:
		return PhaseReleased
	case v1.VolumeFailed:
		return PhaseFailed
	case v1.VolumePending:
	}
	return PhasePending
}

// Released reports whether the claim of the volume is gone. Failed counts as Released:
// kube-controller-manager sets Failed on released volumes only.
func (p Phase) Released() bool { return p == PhaseReleased || p == PhaseFailed }

// String returns the name of the value.
func (p Phase) String() string {
	return enum.Name(p, "Pending", "Available", "Bound", "Released", "Failed")
}
