package deletion

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
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
	return c.namesOf(c.Deleter.Keys(volume), func(other *v1.PersistentVolume) bool { return c.SameDisk(volume, other) })
}

// DeletedWith reports whether the deletion of the volume's disk deletes that of the other one: it is the
// same disk, or is inside.
func (c *Controller) DeletedWith(volume, other *v1.PersistentVolume) bool {
	nested, ok := c.Deleter.(backend.Nested)
	return c.SameDisk(volume, other) || ok && nested.Inside(other, volume)
}

// VolumesDeletedWith returns the names of the cached volumes whose disks are deleted with that of the
// volume, itself included.
func (c *Controller) VolumesDeletedWith(volume *v1.PersistentVolume) []string {
	return c.namesOf(c.Deleter.Keys(volume), func(other *v1.PersistentVolume) bool { return c.DeletedWith(volume, other) })
}

// sharing returns the names of the other volumes whose disks are deleted with that of the volume.
func (c *Controller) sharing(volume *v1.PersistentVolume) []string {
	return slices.DeleteFunc(c.VolumesDeletedWith(volume), func(name string) bool { return name == volume.Name })
}

// enclosing returns the names of the volumes that have the disk of the volume inside theirs.
func (c *Controller) enclosing(volume *v1.PersistentVolume) []string {
	nested, ok := c.Deleter.(backend.Nested)
	if !ok {
		return nil
	}
	return c.namesOf(nested.Enclosing(volume), func(other *v1.PersistentVolume) bool { return nested.Inside(volume, other) })
}

// namesOf returns the sorted names of the cached volumes with one of the keys that match: the event
// that names the first one has one text.
func (c *Controller) namesOf(keys []string, matches func(*v1.PersistentVolume) bool) []string {
	var names []string
	for _, key := range keys {
		for _, volume := range controller.FromBucket(c.Volumes, byDisk, key, matches) {
			if !slices.Contains(names, volume.Name) {
				names = append(names, volume.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// diskKeys indexes volumes by their disks, and by those around them.
func (c *Controller) diskKeys(object any) []string {
	volume, ok := object.(*v1.PersistentVolume)
	if !ok {
		return nil
	}
	keys := c.Deleter.Keys(volume)
	if nested, ok := c.Deleter.(backend.Nested); ok {
		keys = append(slices.Clip(keys), nested.Enclosing(volume)...)
	}
	return keys
}
