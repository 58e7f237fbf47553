package external_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

const (
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	migratedTo    = "pv.kubernetes.io/migrated-to"
)

// volumeWith returns a volume with the annotations, and a CSI source if a driver is named.
func volumeWith(csiDriver string, annotations map[string]string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	if csiDriver != "" {
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: csiDriver}
	}
	return volume
}

func TestOwns(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		want   bool
	}{
		"dynamic volume of the driver":             {volumeWith("d", map[string]string{provisionedBy: "d"}), true},
		"dynamic volume of a migrated plugin":      {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/x", migratedTo: "d"}), true},
		"dynamic volume of another driver":         {volumeWith("d", map[string]string{provisionedBy: "other"}), false},
		"dynamic volume of an in-tree plugin":      {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/x"}), false},
		"static volume of the driver":              {volumeWith("d", nil), true},
		"static volume of another driver":          {volumeWith("other", nil), false},
		"static volume migrated to the driver":     {volumeWith("", map[string]string{migratedTo: "d"}), true},
		"static volume migrated to another driver": {volumeWith("", map[string]string{migratedTo: "other"}), false},
		"static volume of an in-tree plugin":       {volumeWith("", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Owns("d", tc.volume); got != tc.want {
				t.Errorf("Owns = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDriverOfVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		want   string
	}{
		"dynamic":                    {volumeWith("d", map[string]string{provisionedBy: "d"}), "d"},
		"dynamic, other provisioner": {volumeWith("d", map[string]string{provisionedBy: "other"}), "other"},
		"migrated":                   {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/x", migratedTo: "d"}), "d"},
		"static":                     {volumeWith("d", nil), "d"},
		"in-tree":                    {volumeWith("", nil), ""},
		"dynamic, no provisioner":    {volumeWith("d", map[string]string{provisionedBy: ""}), ""},
		"dynamic, in-tree plugin":    {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/x"}), "kubernetes.io/x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DriverOf(tc.volume); got != tc.want {
				t.Errorf("DriverOf = %q, want %q", got, tc.want)
			}
		})
	}
}
