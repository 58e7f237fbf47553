package binding

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func storageOf(size string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
}

func TestBoundStatusLeavesResizersFieldsAlone(t *testing.T) {
	gold, silver := "gold", "silver"
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	for name, tc := range map[string]struct {
		status     v1.PersistentVolumeClaimStatus
		preResize  string
		capacity   string
		attributes *string
	}{
		"pending claim gets both": {v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}, "", "2Gi", &gold},
		"lost claim gets the capacity": {v1.PersistentVolumeClaimStatus{Phase: v1.ClaimLost,
			CurrentVolumeAttributesClassName: &silver}, "", "2Gi", &silver},
		"bound claim keeps both": {v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound,
			Capacity: storageOf("1Gi"), CurrentVolumeAttributesClassName: &silver}, "", "1Gi", &silver},
		"resize under way shows former capacity": {v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}, "1Gi", "1Gi", &gold},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &v1.PersistentVolumeClaim{Status: tc.status}
			volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{Capacity: storageOf("2Gi"), AccessModes: modes,
				VolumeAttributesClassName: &gold}}
			if tc.preResize != "" {
				volume.Annotations = map[string]string{storage.AnnPreResizeCapacity: tc.preResize}
			}
			status := BoundStatus(claim, volume)
			if got := status.Capacity.Storage().String(); got != tc.capacity ||
				*status.CurrentVolumeAttributesClassName != *tc.attributes {
				t.Errorf("capacity %s and attributes class %s, want %s and %s", got, *status.CurrentVolumeAttributesClassName,
					tc.capacity, *tc.attributes)
			}
			claim.Status = *status
			if got := StatusOf(claim, volume); got != StatusBound {
				t.Errorf("StatusOf = %v, want StatusBound", got)
			}
		})
	}
}

func TestStatusWithoutVolumeIsRecognized(t *testing.T) {
	for phase, want := range map[v1.PersistentVolumeClaimPhase]Status{v1.ClaimPending: StatusPending,
		v1.ClaimLost: StatusLost} {
		claim := &v1.PersistentVolumeClaim{Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound,
			Capacity: storageOf("1Gi")}}
		if got := StatusOf(claim, nil); got != OtherStatus {
			t.Errorf("StatusOf a Bound claim without volume = %v", got)
		}
		claim.Status = *StatusWithoutVolume(claim, phase)
		if got := StatusOf(claim, nil); got != want {
			t.Errorf("StatusOf = %v, want %v", got, want)
		}
	}
}
