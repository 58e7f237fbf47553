package deletion

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// HandleOf returns the handle of the volume, "" for a volume of another driver.
func (c *Controller) HandleOf(volume *v1.PersistentVolume) string {
	return c.Deleter.HandleOf(volume)
}

// SameDisk reports whether two volumes have the same disk.
func (c *Controller) SameDisk(a, b *v1.PersistentVolume) bool {
	return c.Deleter.Same(a, b)
}

// VolumesOnDisk returns the names of the cached volumes that have the disk of the volume, itself
// included.
func (c *Controller) VolumesOnDisk(volume *v1.PersistentVolume) []string {
	var names []string
	for _, key := range c.Deleter.Keys(volume) {
		for _, other := range controller.FromBucket(c.Volumes, byDisk, key, func(other *v1.PersistentVolume) bool { return c.SameDisk(volume, other) }) {
			if !slices.Contains(names, other.Name) {
				names = append(names, other.Name)
			}
		}
	}
	slices.Sort(names) // the event that names the first one has one text
	return names
}

// sharing returns the names of the other volumes that have the disk of the volume.
func (c *Controller) sharing(volume *v1.PersistentVolume) []string {
	return slices.DeleteFunc(c.VolumesOnDisk(volume), func(name string) bool { return name == volume.Name })
}

// diskKeys indexes volumes by their disks.
func (c *Controller) diskKeys(object any) []string {
	volume, ok := object.(*v1.PersistentVolume)
	if !ok {
		return nil
	}
	return c.Deleter.Keys(volume)
}
