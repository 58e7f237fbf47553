package storage_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// annotations of a claim or a volume.
type annotations map[string]string

func (a annotations) claim(class *string) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{StorageClassName: class}}
	claim.Annotations = a
	return claim
}

func (a annotations) volume(class string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{StorageClassName: class}}
	volume.Annotations = a
	return volume
}

func TestClassIsReadFromBetaAnnotationFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations annotations
		class       *string
		want        string
		chosen      bool
	}{
		"no class":                   {nil, nil, "", false},
		"empty class":                {nil, ptr.To(""), "", true},
		"class in spec":              {nil, ptr.To("fast"), "fast", true},
		"class in annotation":        {annotations{v1.BetaStorageClassAnnotation: "slow"}, ptr.To("fast"), "slow", true},
		"class only in annotation":   {annotations{v1.BetaStorageClassAnnotation: "slow"}, nil, "slow", true},
		"empty class in annotation":  {annotations{v1.BetaStorageClassAnnotation: ""}, ptr.To("fast"), "", true},
		"annotation without a class": {annotations{"other": "slow"}, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := tc.annotations.claim(tc.class)
			if got := storage.ClaimClass(claim); got != tc.want {
				t.Errorf("ClaimClass = %q, want %q", got, tc.want)
			}
			if got := storage.ClassChosen(claim); got != tc.chosen {
				t.Errorf("ClassChosen = %v, want %v", got, tc.chosen)
			}
			if got := storage.VolumeClass(tc.annotations.volume(ptr.Deref(tc.class, ""))); got != tc.want {
				t.Errorf("VolumeClass = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClaimProvisioner(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations annotations
		want        string
	}{
		"no annotation":            {nil, ""},
		"annotation":               {annotations{storage.AnnStorageProvisioner: "new"}, "new"},
		"beta annotation":          {annotations{storage.AnnBetaStorageProvisioner: "beta"}, "beta"},
		"both annotations":         {annotations{storage.AnnStorageProvisioner: "new", storage.AnnBetaStorageProvisioner: "beta"}, "new"},
		"empty annotation is used": {annotations{storage.AnnStorageProvisioner: "", storage.AnnBetaStorageProvisioner: "beta"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := storage.ClaimProvisioner(tc.annotations.claim(nil)); got != tc.want {
				t.Errorf("ClaimProvisioner = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIsDynamic(t *testing.T) {
	if storage.IsDynamic(annotations{"other": "d"}.volume("")) {
		t.Error("a static volume is dynamic")
	}
	if !storage.IsDynamic(annotations{storage.AnnDynamicallyProvisioned: "d"}.volume("")) {
		t.Error("a provisioned volume is not dynamic")
	}
}

func TestModeOf(t *testing.T) {
	if got := storage.ModeOf(nil); got != v1.PersistentVolumeFilesystem {
		t.Errorf("ModeOf(nil) = %v", got)
	}
	if got := storage.ModeOf(ptr.To(v1.PersistentVolumeBlock)); got != v1.PersistentVolumeBlock {
		t.Errorf("ModeOf(Block) = %v", got)
	}
}

func TestWaitsForFirstConsumer(t *testing.T) {
	for mode, want := range map[storagev1.VolumeBindingMode]bool{
		"": false, storagev1.VolumeBindingImmediate: false, storagev1.VolumeBindingWaitForFirstConsumer: true,
	} {
		class := &storagev1.StorageClass{}
		if mode != "" {
			class.VolumeBindingMode = &mode
		}
		if got := storage.WaitsForFirstConsumer(class); got != want {
			t.Errorf("WaitsForFirstConsumer(%q) = %v, want %v", mode, got, want)
		}
	}
}

func TestEmptyAnnotationNamesNoProvisioner(t *testing.T) {
	for name, tc := range map[string]struct {
		volume annotations
		want   bool
	}{
		"absent": {annotations{}, false},
		"empty":  {annotations{storage.AnnDynamicallyProvisioned: ""}, false},
		"named":  {annotations{storage.AnnDynamicallyProvisioned: "d"}, true},
	} {
		if got := storage.HasProvisioner(tc.volume.volume("")); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
