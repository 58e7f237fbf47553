package deletion

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// sourceOf is the volume's source in CSI terms: a disk is the same one whether a
// volume names it as the in-tree plugin did or as the driver does.
func (c *Controller) sourceOf(volume *v1.PersistentVolume) (*v1.CSIPersistentVolumeSource, error) {
	if volume.Spec.CSI != nil {
		return volume.Spec.CSI, nil
	}
	translated, err := c.Translator.Volume(volume)
	if err != nil {
		return nil, err
	}
	return translated.Spec.CSI, nil
}

// handle is what the driver is to delete.
func (c *Controller) handle(volume *v1.PersistentVolume) (string, error) {
	switch source, err := c.sourceOf(volume); {
	case err != nil:
		return "", err
	case source.Driver != c.Driver.Name():
		return "", fmt.Errorf("the volume is reclaimed by driver %s and has a handle of driver %s, so neither is asked to delete it", c.Driver.Name(), source.Driver)
	case source.VolumeHandle == "":
		return "", errors.New("the volume has no volume handle")
	default:
		return source.VolumeHandle, nil
	}
}

// HandleOf is what the driver calls the volume, "" if it is not the driver's.
func (c *Controller) HandleOf(volume *v1.PersistentVolume) string {
	if source, err := c.sourceOf(volume); err == nil && source.Driver == c.Driver.Name() {
		return source.VolumeHandle
	}
	return ""
}

// Naming returns the names of the volumes that have the disk of this one, itself
// among them: by their handle, or, where one of two is written as the in-tree plugin
// did, by the disk's name there, for handles are spelled otherwise then.
func (c *Controller) Naming(volume *v1.PersistentVolume) []string {
	names := c.indexed(byHandle, c.HandleOf(volume))
	for _, name := range c.indexed(byDisk, c.Translator.Disk(volume)) {
		other := controller.Lookup[*v1.PersistentVolume](c.Volumes, name)
		if other != nil && c.SameDisk(volume, other) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// SameDisk says whether the two volumes have one disk, as far as they tell.
func (c *Controller) SameDisk(a, b *v1.PersistentVolume) bool {
	inTree := a.Spec.CSI == nil || b.Spec.CSI == nil
	handle, disk := c.HandleOf(a), c.Translator.Disk(a)
	return handle != "" && handle == c.HandleOf(b) || inTree && disk != "" && disk == c.Translator.Disk(b)
}

// sharing returns the names of the other volumes that have the disk of this one.
func (c *Controller) sharing(volume *v1.PersistentVolume) []string {
	return slices.DeleteFunc(c.Naming(volume), func(name string) bool { return name == volume.Name })
}

func (c *Controller) indexed(index, value string) []string {
	if value == "" {
		return nil
	}
	names, err := c.Volumes.GetIndexer().IndexKeys(index, value)
	if err != nil { // there is no such index
		return nil
	}
	return names
}

// named is an index of volumes by a name, which those have not for which it is "".
func named(name func(*v1.PersistentVolume) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		volume, ok := object.(*v1.PersistentVolume)
		if !ok || name(volume) == "" {
			return nil, nil
		}
		return []string{name(volume)}, nil
	}
}
