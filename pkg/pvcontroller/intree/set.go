package intree

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// prefix starts the names of all in-tree plugins.
const prefix = "kubernetes.io/"

// Set finds plugins by the names of provisioners and by the sources of volumes.
type Set struct {
	migration Migration
	plugins   []Plugin
}

// NewSet returns the set of the plugins; migration says which plugins, these or
// others, CSI drivers have taken over.
func NewSet(migration Migration, plugins ...Plugin) *Set {
	return &Set{migration: migration, plugins: plugins}
}

// ProvisionerFor returns the plugin that provisions for classes with the name,
// and false if none here does, or if a CSI driver has taken over.
func (s *Set) ProvisionerFor(name string) (Provisioner, bool) {
	if _, migrated := s.migration.Driver(name); migrated {
		return nil, false
	}
	provisioner, able := s.byName(name).(Provisioner)
	return provisioner, able
}

// Provisions says whether [Set.ProvisionerFor] returns a plugin for the name.
func (s *Set) Provisions(name string) bool {
	_, able := s.ProvisionerFor(name)
	return able
}

// ExternalProvisioner returns who outside of this program is asked for volumes of
// classes with the name: the CSI driver that has taken over an in-tree plugin, or
// the name itself. It returns false for in-tree names that nobody outside serves.
func (s *Set) ExternalProvisioner(name string) (string, bool) {
	if driver, migrated := s.migration.Driver(name); migrated {
		return driver, true
	}
	return name, !strings.HasPrefix(name, prefix)
}

// MigratedTo returns the CSI driver that has taken over the plugin that
// provisioned the volume, or that a static volume is of.
func (s *Set) MigratedTo(volume *v1.PersistentVolume) (driver string, migrated bool) {
	plugin, provisioned := volume.Annotations[storage.AnnDynamicallyProvisioned]
	if !provisioned {
		if plugin = s.migration.PluginOf(volume); plugin == "" {
			return "", false
		}
	}
	return s.migration.Driver(plugin)
}

// DeleterFor returns the plugin that deletes the volume: the one that provisioned
// it, or for a static volume the one of its source.
func (s *Set) DeleterFor(volume *v1.PersistentVolume) (Deleter, bool) {
	plugin := s.byName(volume.Annotations[storage.AnnDynamicallyProvisioned])
	if volume.Annotations[storage.AnnDynamicallyProvisioned] == "" {
		plugin = s.bySource(volume)
	}
	deleter, able := plugin.(Deleter)
	return deleter, able
}

// RecyclerFor returns the plugin that recycles the volume.
func (s *Set) RecyclerFor(volume *v1.PersistentVolume) (Recycler, bool) {
	recycler, able := s.bySource(volume).(Recycler)
	return recycler, able
}

// Location names the place of the volume's data among those of all plugins, "" if
// no plugin here knows it.
func (s *Set) Location(volume *v1.PersistentVolume) string {
	plugin := s.bySource(volume)
	if plugin == nil {
		return ""
	}
	return disk.Directory(plugin.Name(), plugin.Location(volume))
}

// Places returns the location of the volume's data and all locations above it:
// whoever deletes one of them deletes this data.
func (s *Set) Places(volume *v1.PersistentVolume) []string {
	plugin := s.bySource(volume)
	if plugin == nil {
		return nil
	}
	return disk.Enclosing(plugin.Name(), plugin.Location(volume))
}

// Apart says whether two volumes that have one location have different data.
func (s *Set) Apart(volume, other *v1.PersistentVolume) bool {
	plugin, nodeBound := s.bySource(volume).(NodeBound)
	return nodeBound && plugin.Apart(volume, other)
}

// RecyclesIn says whether a plugin here makes its recycler pods in the namespace.
func (s *Set) RecyclesIn(namespace string) bool {
	return slices.ContainsFunc(s.plugins, func(plugin Plugin) bool {
		recycler, able := plugin.(Recycler)
		return able && recycler.RecyclerNamespace() == namespace
	})
}

func (s *Set) byName(name string) Plugin {
	for _, plugin := range s.plugins {
		if plugin.Name() == name {
			return plugin
		}
	}
	return nil
}

func (s *Set) bySource(volume *v1.PersistentVolume) Plugin {
	for _, plugin := range s.plugins {
		if plugin.Location(volume) != "" {
			return plugin
		}
	}
	return nil
}
