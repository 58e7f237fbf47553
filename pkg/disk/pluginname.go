package disk

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// PluginName returns the name that an in-tree plugin gives the disk or share of its
// volume, "" for the source of a plugin that is not migrated to CSI.
//
// A disk has one such name, while the handles of its CSI driver have several
// spellings. Volumes with different names have different disks; volumes with one name
// may have one disk.
func PluginName(volume *v1.PersistentVolume) string {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.AWSElasticBlockStore != nil: // aws://ZONE/ID, or ID
		id := source.AWSElasticBlockStore.VolumeID
		return id[strings.LastIndex(id, "/")+1:]
	case source.GCEPersistentDisk != nil:
		return source.GCEPersistentDisk.PDName
	case source.Cinder != nil:
		return source.Cinder.VolumeID
	case source.AzureDisk != nil:
		return strings.ToLower(source.AzureDisk.DataDiskURI)
	case source.AzureFile != nil: // the volume does not state the storage account for certain
		return source.AzureFile.ShareName
	case source.VsphereVolume != nil:
		return source.VsphereVolume.VolumePath
	case source.PortworxVolume != nil:
		return source.PortworxVolume.VolumeID
	}
	return ""
}
