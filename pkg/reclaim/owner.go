package reclaim

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// inTreePrefix starts the names of all in-tree plugins.
const inTreePrefix = "kubernetes.io/"

// Owns says whether the volume is the driver's to reclaim: by the name of who
// provisioned it or of the driver that it was migrated to, or, for a static
// volume, by its CSI driver.
func Owns(driver string, volume *v1.PersistentVolume) bool {
	if volume.Annotations[storage.AnnMigratedTo] == driver {
		return true
	}
	if provisioner, dynamic := volume.Annotations[storage.AnnDynamicallyProvisioned]; dynamic {
		return provisioner == driver
	}
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == driver
}

// OriginOf says who made the volume. Migrated tells whether the in-tree plugin that
// made it, or that a static volume is of, is migrated to CSI, deletes whether a plugin here can delete for it.
func OriginOf(volume *v1.PersistentVolume, migrated, deletes bool) Origin {
	plugin, provisioned := volume.Annotations[storage.AnnDynamicallyProvisioned]
	switch {
	case !provisioned && migrated && volume.Spec.CSI == nil:
		return StaticMigrated
	case !provisioned:
		return Static
	case migrated:
		return ByMigratedPlugin
	case !strings.HasPrefix(plugin, inTreePrefix):
		return ByExternal
	case deletes:
		return ByPlugin
	}
	return ByMissingPlugin
}

// MigratedToOf compares the migrated-to annotation of the volume with the driver
// that its plugin is migrated to, "" for none.
func MigratedToOf(volume *v1.PersistentVolume, driver string) MigratedTo {
	switch named, present := volume.Annotations[storage.AnnMigratedTo]; {
	case !present:
		return MigratedNowhere
	case driver != "" && named == driver:
		return MigratedRight
	}
	return MigratedWrong
}

// PluginOf says who reclaims the volume. Migrated tells whether its plugin is
// migrated to CSI, be it annotated yet or not; deletes whether a plugin here can
// delete it.
func PluginOf(volume *v1.PersistentVolume, migrated, deletes bool) Plugin {
	provisioner := volume.Annotations[storage.AnnDynamicallyProvisioned]
	switch _, annotated := volume.Annotations[storage.AnnMigratedTo]; {
	case annotated, migrated:
		return Migrated
	case volume.Spec.CSI != nil, provisioner != "" && !strings.HasPrefix(provisioner, inTreePrefix):
		return External
	case deletes:
		return Deletes
	}
	return Missing
}

// IsReleased reports whether the claim no longer uses the volume.
func IsReleased(claim storage.ClaimRelation) bool {
	return claim == storage.ClaimGone || claim == storage.ClaimElsewhere
}

// MayReclaim reports whether the claim allows that the volume is reclaimed: the claim no
// longer uses the volume, or was never bound to it and never will be, because the volume
// was provisioned for the claim and is being deleted.
func MayReclaim(claim storage.ClaimRelation, dynamic, deleting bool) bool {
	return IsReleased(claim) || claim == storage.ClaimUnbound && dynamic && deleting
}
