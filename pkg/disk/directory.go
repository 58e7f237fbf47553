package disk

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// HostPath returns the cleaned directory of a host-path volume, "" for another source.
func HostPath(volume *v1.PersistentVolume) string {
	if source := volume.Spec.HostPath; source != nil && source.Path != "" {
		return path.Clean(source.Path)
	}
	return ""
}

// Local returns the cleaned path of a local volume, "" for another source.
func Local(volume *v1.PersistentVolume) string {
	if source := volume.Spec.Local; source != nil && source.Path != "" {
		return path.Clean(source.Path)
	}
	return ""
}

// NFS returns server and cleaned directory of an NFS volume, "" for another source. Two names of
// one server are not detected, but its name has no case, and no directory is above the root.
func NFS(volume *v1.PersistentVolume) string {
	if source := volume.Spec.NFS; source != nil {
		server := strings.ToLower(strings.TrimSuffix(source.Server, "."))
		return server + strings.TrimSuffix(path.Clean("/"+source.Path), "/")
	}
	return ""
}

// Directory returns the index key of a directory of the plugin.
func Directory(plugin, directory string) string {
	return plugin + ":" + directory
}

// Enclosing returns the index keys of a directory of the plugin and of all its parent
// directories. Deleting any of these directories deletes the data of this one.
func Enclosing(plugin, directory string) []string {
	keys := []string{Directory(plugin, directory)}
	for parent := path.Dir(directory); parent != directory && parent != "."; parent = path.Dir(directory) {
		directory = parent
		keys = append(keys, Directory(plugin, directory))
	}
	return keys
}

// OnSeparateNodes reports whether deleting or recycling a host-path volume cannot reach the data of
// the other volume: no node reaches both, and the plugin does not run where the other one is. The plugin
// deletes directories of its own node, whatever the node affinity is, while a recycler pod follows
// the affinity. node is the name of the plugin's node, "" if it is unknown and may be any.
func OnSeparateNodes(node string, volume, other *v1.PersistentVolume) bool {
	switch {
	case !topology.Disjoint(volume.Spec.NodeAffinity, other.Spec.NodeAffinity):
		return false
	case volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRecycle:
		return true
	}
	return node != "" && !topology.Reaches(map[string]string{v1.LabelHostname: node}, other.Spec.NodeAffinity)
}
