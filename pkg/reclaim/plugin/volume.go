package plugin

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// inTreePrefix starts the names of all in-tree plugins.
const inTreePrefix = "kubernetes.io/"

// Origin is the creator of a volume.
type Origin int

const (
	// OriginStatic: a user; the volume has no annotation provisioned-by.
	OriginStatic Origin = iota
	// OriginPlugin: an in-tree plugin that can delete the volume here.
	OriginPlugin
	// OriginMissingPlugin: an in-tree plugin that cannot delete the volume here.
	OriginMissingPlugin
	// OriginMigratedPlugin: an in-tree plugin that is migrated to CSI.
	OriginMigratedPlugin
	// OriginExternal: an external provisioner.
	OriginExternal
	// OriginStaticMigrated: a user, for an in-tree plugin that is migrated to CSI.
	OriginStaticMigrated
)

// String returns the name of the value.
func (o Origin) String() string {
	return enum.Name(o, "Static", "Plugin", "MissingPlugin", "MigratedPlugin", "External", "StaticMigrated")
}

// OriginOf returns the creator of the volume. Migrated: the in-tree plugin of the volume is
// migrated to CSI. Deletes: a plugin here can delete the volume.
func OriginOf(volume *v1.PersistentVolume, migrated, deletes bool) Origin {
	plugin, provisioned := volume.Annotations[storage.AnnDynamicallyProvisioned]
	switch {
	case !provisioned && migrated && volume.Spec.CSI == nil:
		return OriginStaticMigrated
	case !provisioned:
		return OriginStatic
	case migrated:
		return OriginMigratedPlugin
	case !strings.HasPrefix(plugin, inTreePrefix):
		return OriginExternal
	case deletes:
		return OriginPlugin
	}
	return OriginMissingPlugin
}

// MigratedTo is the annotation migrated-to of a volume.
type MigratedTo int

const (
	// MigratedToNone: the volume has no annotation.
	MigratedToNone MigratedTo = iota
	// MigratedToDriver: the annotation names the driver that the plugin is migrated to.
	MigratedToDriver
	// MigratedToOther: the annotation has any other value.
	MigratedToOther
)

// String returns the name of the value.
func (m MigratedTo) String() string { return enum.Name(m, "None", "Driver", "Other") }

// MigratedToOf compares the annotation with the driver that the plugin of the volume is
// migrated to, "" for none.
func MigratedToOf(volume *v1.PersistentVolume, driver string) MigratedTo {
	switch named, present := volume.Annotations[storage.AnnMigratedTo]; {
	case !present:
		return MigratedToNone
	case driver != "" && named == driver:
		return MigratedToDriver
	}
	return MigratedToOther
}

// Reclaimer is the component that reclaims a volume.
type Reclaimer int

const (
	// ReclaimerMigrated: the CSI driver that the in-tree plugin is migrated to.
	ReclaimerMigrated Reclaimer = iota
	// ReclaimerExternal: a CSI driver or another external provisioner. Such a volume is not
	// recycled.
	ReclaimerExternal
	// ReclaimerMissing: no component; the volume needs an in-tree plugin that is not here.
	ReclaimerMissing
	// ReclaimerPlugin: an in-tree plugin here.
	ReclaimerPlugin
)

// String returns the name of the value.
func (r Reclaimer) String() string {
	return enum.Name(r, "Migrated", "External", "Missing", "Plugin")
}

// ReclaimerOf returns the component that reclaims the volume. Migrated: the plugin of the
// volume is migrated to CSI, with or without the annotation. Deletes: a plugin here can
// delete the volume.
func ReclaimerOf(volume *v1.PersistentVolume, migrated, deletes bool) Reclaimer {
	provisioner := volume.Annotations[storage.AnnDynamicallyProvisioned]
	switch _, annotated := volume.Annotations[storage.AnnMigratedTo]; {
	case annotated, migrated:
		return ReclaimerMigrated
	case volume.Spec.CSI != nil, provisioner != "" && !strings.HasPrefix(provisioner, inTreePrefix):
		return ReclaimerExternal
	case deletes:
		return ReclaimerPlugin
	}
	return ReclaimerMissing
}
