package storage_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestPolicyOf(t *testing.T) {
	for name, want := range map[v1.PersistentVolumeReclaimPolicy]storage.Policy{
		v1.PersistentVolumeReclaimDelete: storage.PolicyDelete, v1.PersistentVolumeReclaimRetain: storage.PolicyRetain,
		v1.PersistentVolumeReclaimRecycle: storage.PolicyRecycle, "Shred": storage.PolicyUnknown, "": storage.PolicyUnknown,
	} {
		if got := storage.PolicyOf(name); got != want {
			t.Errorf("PolicyOf(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestPhaseOf(t *testing.T) {
	for name, want := range map[v1.PersistentVolumePhase]storage.Phase{
		v1.VolumePending: storage.PhasePending, v1.VolumeAvailable: storage.PhaseAvailable,
		v1.VolumeBound:    storage.PhaseBound,
		v1.VolumeReleased: storage.PhaseReleased, v1.VolumeFailed: storage.PhaseFailed, "": storage.PhasePending,
	} {
		if got := storage.PhaseOf(name); got != want {
			t.Errorf("PhaseOf(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestReleasedPhases(t *testing.T) {
	for phase := storage.PhasePending; phase <= storage.PhaseFailed; phase++ {
		if want := phase == storage.PhaseReleased || phase == storage.PhaseFailed; phase.Released() != want {
			t.Errorf("%v.Released() = %v, want %v", phase, phase.Released(), want)
		}
	}
}
