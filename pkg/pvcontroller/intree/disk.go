package intree

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Disk is what identifies the disk, or the share, of a volume of a plugin that is
// migrated to CSI, as far as the volume tells; "" for others. A disk has one such name
// in its plugin's terms, though handles of its driver are spelled in several ways: two
// volumes of different names have different disks, two of one name may have one.
func Disk(volume *v1.PersistentVolume) string {
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
	case source.AzureFile != nil: // its account cannot be told for certain
		return source.AzureFile.ShareName
	case source.VsphereVolume != nil:
		return source.VsphereVolume.VolumePath
	case source.PortworxVolume != nil:
		return source.PortworxVolume.VolumeID
	}
	return ""
}
