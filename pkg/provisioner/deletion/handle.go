package deletion

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/disk"
)

// disks identifies the disks of the driver.
func (c *Controller) disks() disk.Driver {
	return disk.Driver{Name: c.Driver.Name(), Translator: c.Translator}
}

// HandleOf returns the volume handle, "" for a volume of another driver.
func (c *Controller) HandleOf(volume *v1.PersistentVolume) string {
	return c.disks().HandleOf(volume)
}

// SameDisk reports whether the two volumes stand for one disk.
func (c *Controller) SameDisk(a, b *v1.PersistentVolume) bool {
	return c.disks().Same(a, b)
}

// Naming returns the names of all cached volumes that stand for the volume's disk,
// including the volume itself. The index byDisk finds in-tree volumes whose handles are
// spelled otherwise.
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

// sharing returns the names of the other volumes that stand for the volume's disk.
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

// named indexes volumes by name(volume); volumes with an empty name are not indexed.
func named(name func(*v1.PersistentVolume) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		volume, ok := object.(*v1.PersistentVolume)
		if !ok || name(volume) == "" {
			return nil, nil
		}
		return []string{name(volume)}, nil
	}
}
