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

// NewSet returns the set of the plugins. Migration tells which plugins, of this program or
// others, a CSI driver replaced.
func NewSet(migration Migration, plugins ...Plugin) *Set {
	return &Set{migration: migration, plugins: plugins}
}

// ProvisionerFor returns the plugin that provisions for classes with the name, and false
// if there is none or a CSI driver replaced it.
func (s *Set) ProvisionerFor(name string) (Provisioner, bool) {
	if _, migrated := s.migration.Driver(name); migrated {
		return nil, false
	}
	provisioner, able := s.byName(name).(Provisioner)
	return provisioner, able
}

// Provisions reports whether [Set.ProvisionerFor] returns a plugin for the name.
func (s *Set) Provisions(name string) bool {
	_, able := s.ProvisionerFor(name)
	return able
}

// ExternalProvisioner returns the provisioner outside of this program for classes with
// the name: the CSI driver that replaced an in-tree plugin, or the name itself. It returns
// false for in-tree names without a CSI driver.
func (s *Set) ExternalProvisioner(name string) (string, bool) {
	if driver, migrated := s.migration.Driver(name); migrated {
		return driver, true
	}
	return name, !strings.HasPrefix(name, prefix)
}

// MigratedTo returns the CSI driver that replaced the plugin of the volume: the plugin
// that provisioned the volume, or the plugin of a static volume's source.
func (s *Set) MigratedTo(volume *v1.PersistentVolume) (driver string, migrated bool) {
	plugin, provisioned := volume.Annotations[storage.AnnDynamicallyProvisioned]
	if !provisioned {
		if plugin = s.migration.PluginOf(volume); plugin == "" {
			return "", false
		}
	}
	return s.migration.Driver(plugin)
}

// DeleterFor returns the plugin that deletes the volume: the plugin that provisioned the
// volume, or the plugin of a static volume's source.
func (s *Set) DeleterFor(volume *v1.PersistentVolume) (Deleter, bool) {
	plugin := s.byName(volume.Annotations[storage.AnnDynamicallyProvisioned])
	if volume.Annotations[storage.AnnDynamicallyProvisioned] == "" {
		plugin = s.bySource(volume)
	}
	deleter, able := plugin.(Deleter)
	return deleter, able
}

// Refuses reports whether the plugin that deletes the volume will never do so.
func (s *Set) Refuses(volume *v1.PersistentVolume) bool {
	deleter, _ := s.DeleterFor(volume)
	selective, able := deleter.(Selective)
	return able && !selective.CanDelete(volume)
}

// RecyclerFor returns the plugin that recycles the volume.
func (s *Set) RecyclerFor(volume *v1.PersistentVolume) (Recycler, bool) {
	recycler, able := s.bySource(volume).(Recycler)
	return recycler, able
}

// Location returns the location of the volume's data, which is distinct across plugins,
// or "" if no plugin of this program can reach the data.
func (s *Set) Location(volume *v1.PersistentVolume) string {
	plugin, location := s.locate(volume)
	if plugin == nil {
		return ""
	}
	return disk.Directory(plugin.Name(), location)
}

// Places returns the location of the volume's data and all locations above: deleting any
// of them deletes the data.
func (s *Set) Places(volume *v1.PersistentVolume) []string {
	plugin, location := s.locate(volume)
	if plugin == nil {
		return nil
	}
	return disk.Enclosing(plugin.Name(), location)
}

// Apart reports whether two volumes with the same location have different data.
func (s *Set) Apart(volume, other *v1.PersistentVolume) bool {
	plugin, _ := s.locate(volume)
	nodeBound, able := plugin.(NodeBound)
	return able && nodeBound.Apart(volume, other)
}

// locate returns the location of the volume's data, and the plugin that reaches the data at that
// location: the volume's own plugin, or one that works on nodes. It returns nil for none.
func (s *Set) locate(volume *v1.PersistentVolume) (Plugin, string) {
	if plugin := s.bySource(volume); plugin != nil {
		return plugin, plugin.Location(volume)
	}
	for _, plugin := range s.plugins {
		if nodeBound, able := plugin.(NodeBound); able && nodeBound.LocationOnNode(volume) != "" {
			return plugin, nodeBound.LocationOnNode(volume)
		}
	}
	return nil, ""
}

// RecyclesIn reports whether recycler pods of a plugin are created in the namespace.
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
