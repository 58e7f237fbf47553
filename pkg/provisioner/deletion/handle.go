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
	return sortedNames(c.onDisk(volume))
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
	found := c.onDisk(volume)
	if nested, ok := c.Deleter.(backend.Nested); ok {
		found = append(found, c.matching(byEnclosing, c.Deleter.Keys(volume),
			func(other *v1.PersistentVolume) bool { return nested.Inside(other, volume) })...)
	}
	return sortedNames(found)
}

// onDisk returns the cached volumes that have the disk of the volume.
func (c *Controller) onDisk(volume *v1.PersistentVolume) []*v1.PersistentVolume {
	return c.matching(byDisk, c.Deleter.Keys(volume),
		func(other *v1.PersistentVolume) bool { return c.SameDisk(volume, other) })
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
	return sortedNames(c.matching(byDisk, nested.Enclosing(volume),
		func(other *v1.PersistentVolume) bool { return nested.Inside(volume, other) }))
}

// matching returns the cached volumes that match, of those with one of the keys in the index.
func (c *Controller) matching(index string, keys []string,
	matches func(*v1.PersistentVolume) bool) []*v1.PersistentVolume {
	var found []*v1.PersistentVolume
	for _, key := range keys {
		found = append(found, controller.FromBucket(c.Volumes, index, key, matches)...)
	}
	return found
}

// sortedNames returns each name once, in order: the event that names the first one has one text.
func sortedNames(volumes []*v1.PersistentVolume) []string {
	var names []string
	for _, volume := range volumes {
		names = append(names, volume.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// diskKeys indexes volumes by their disks.
func (c *Controller) diskKeys(object any) []string {
	volume, ok := object.(*v1.PersistentVolume)
	if !ok {
		return nil
	}
	return c.Deleter.Keys(volume)
}

// enclosingKeys indexes volumes by the disks that have theirs inside.
func (c *Controller) enclosingKeys(object any) []string {
	volume, isVolume := object.(*v1.PersistentVolume)
	nested, isNested := c.Deleter.(backend.Nested)
	if !isVolume || !isNested {
		return nil
	}
	return nested.Enclosing(volume)
}
