package external

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Owns reports whether the driver reclaims the volume: a migrated volume by the annotation
// migrated-to, a dynamic one by the name of its provisioner, a static one by its CSI driver.
func Owns(driver string, volume *v1.PersistentVolume) bool {
	if volume.Annotations[storage.AnnMigratedTo] == driver {
		return true
	}
	if provisioner, dynamic := volume.Annotations[storage.AnnDynamicallyProvisioned]; dynamic {
		return provisioner == driver
	}
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == driver
}

// DriverOf returns the driver, or any other provisioner, that reclaims the volume, "" for none.
func DriverOf(volume *v1.PersistentVolume) string {
	candidates := []string{volume.Annotations[storage.AnnMigratedTo],
		volume.Annotations[storage.AnnDynamicallyProvisioned]}
	if volume.Spec.CSI != nil {
		candidates = append(candidates, volume.Spec.CSI.Driver)
	}
	for _, driver := range candidates {
		if driver != "" && Owns(driver, volume) {
			return driver
		}
	}
	return ""
}
