package plugin_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
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

func TestOriginOf(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner       string
		migrated, deletes bool
		want              Origin
	}{
		"static volume":                      {"", false, false, OriginStatic},
		"static volume of a migrated plugin": {"", true, false, OriginStaticMigrated},
		"external provisioner":               {"d", false, false, OriginExternal},
		"in-tree plugin":                     {"kubernetes.io/host-path", false, true, OriginPlugin},
		"in-tree plugin that cannot delete":  {"kubernetes.io/rbd", false, false, OriginMissingPlugin},
		"migrated plugin":                    {"kubernetes.io/gce-pd", true, false, OriginMigratedPlugin},
		"migrated plugin that is here":       {"kubernetes.io/gce-pd", true, true, OriginMigratedPlugin},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{provisionedBy: tc.provisioner}
			if tc.provisioner == "" {
				annotations = nil
			}
			if got := OriginOf(volumeWith("", annotations), tc.migrated, tc.deletes); got != tc.want {
				t.Errorf("OriginOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStaticCSIVolumeIsNeverMigrated(t *testing.T) {
	if got := OriginOf(volumeWith("d", nil), true, false); got != OriginStatic {
		t.Errorf("OriginOf = %v, want %v", got, OriginStatic)
	}
}

func TestMigratedToOf(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		driver      string
		want        MigratedTo
	}{
		"no annotation":              {nil, "d", MigratedToNone},
		"same driver":                {map[string]string{migratedTo: "d"}, "d", MigratedToDriver},
		"another driver":             {map[string]string{migratedTo: "x"}, "d", MigratedToOther},
		"not migrated but annotated": {map[string]string{migratedTo: "d"}, "", MigratedToOther},
		"empty annotation":           {map[string]string{migratedTo: ""}, "", MigratedToOther},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MigratedToOf(volumeWith("", tc.annotations), tc.driver); got != tc.want {
				t.Errorf("MigratedToOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReclaimerOf(t *testing.T) {
	for name, tc := range map[string]struct {
		volume            *v1.PersistentVolume
		migrated, deletes bool
		want              Reclaimer
	}{
		"dynamic volume of a driver":        {volumeWith("d", map[string]string{provisionedBy: "d"}), false, false, ReclaimerExternal},
		"static CSI volume":                 {volumeWith("d", nil), false, false, ReclaimerExternal},
		"volume of an external provisioner": {volumeWith("", map[string]string{provisionedBy: "example.com/nfs"}), false, true, ReclaimerExternal},
		"migrated volume": {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/gce-pd",
			migratedTo: "d"}), false, true, ReclaimerMigrated},
		"migrated volume without annotation":   {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/gce-pd"}), true, true, ReclaimerMigrated},
		"in-tree volume with plugin":           {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/host-path"}), false, true, ReclaimerPlugin},
		"in-tree volume without plugin":        {volumeWith("", map[string]string{provisionedBy: "kubernetes.io/rbd"}), false, false, ReclaimerMissing},
		"static in-tree volume without plugin": {volumeWith("", nil), false, false, ReclaimerMissing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReclaimerOf(tc.volume, tc.migrated, tc.deletes); got != tc.want {
				t.Errorf("ReclaimerOf = %v, want %v", got, tc.want)
			}
		})
	}
}
