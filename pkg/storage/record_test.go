package storage_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestRecordOf(t *testing.T) {
	volumeOf := func(claim types.UID) *v1.PersistentVolume {
		return &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Name: "claim", UID: claim}}}
	}
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		want   storage.Record
	}{
		"no volume":               {nil, storage.RecordAbsent},
		"volume of the claim":     {volumeOf("uid"), storage.RecordPresent},
		"volume of another claim": {volumeOf("other"), storage.RecordConflict},
		"volume reserved by name": {volumeOf(""), storage.RecordConflict},
		"volume without a claim":  {&v1.PersistentVolume{}, storage.RecordConflict},
	} {
		t.Run(name, func(t *testing.T) {
			if got := storage.RecordOf(tc.volume, "uid"); got != tc.want {
				t.Errorf("RecordOf = %v, want %v", got, tc.want)
			}
		})
	}
}
