package deletion

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
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

// Known says whether a PersistentVolume has the handle of this driver.
func (c *Controller) Known(handle string) bool {
	volumes, err := c.Volumes.GetIndexer().IndexKeys(byHandle, handle)
	return err != nil || len(volumes) > 0
}

// sharing returns the names of the other volumes with the same handle.
func (c *Controller) sharing(volume *v1.PersistentVolume) []string {
	handle := c.HandleOf(volume)
	if handle == "" {
		return nil
	}
	names, err := c.Volumes.GetIndexer().IndexKeys(byHandle, handle)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == volume.Name })
}

// handles is the index of volumes by the driver's handle.
func (c *Controller) handles(object any) ([]string, error) {
	if volume, ok := object.(*v1.PersistentVolume); ok {
		if handle := c.HandleOf(volume); handle != "" {
			return []string{handle}, nil
		}
	}
	return nil, nil
}
