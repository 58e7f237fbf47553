package disk

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Translator translates the volumes of the in-tree plugin that a CSI driver replaced.
type Translator interface {
	// Volume returns an in-tree volume with a CSI source.
	Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error)
	// Disk returns the plugin's name of the volume's disk, for an in-tree source and for
	// a CSI source; "" if the name is unknown or the driver replaced no plugin.
	Disk(volume *v1.PersistentVolume) string
}

// Driver identifies the disks of one CSI driver.
type Driver struct {
	// Name is the name of the CSI driver.
	Name       string
	Translator Translator
}

// Handle returns the volume handle that DeleteVolume is called with. The error of a
// volume without a handle of this driver states the reason.
func (d Driver) Handle(volume *v1.PersistentVolume) (string, error) {
	switch source, err := d.source(volume); {
	case err != nil:
		return "", err
	case source.Driver != d.Name:
		return "", fmt.Errorf("the volume is reclaimed by driver %s and has a handle of driver %s, so no driver deletes it",
			d.Name, source.Driver)
	case source.VolumeHandle == "":
		return "", errors.New("the volume has no volume handle")
	default:
		return source.VolumeHandle, nil
	}
}

// HandleOf returns the volume handle, "" for a volume of another driver.
func (d Driver) HandleOf(volume *v1.PersistentVolume) string {
	source, err := d.source(volume)
	if err != nil || source.Driver != d.Name {
		return ""
	}
	return source.VolumeHandle
}

// Same reports whether the two volumes stand for one disk. Plugin names count only if
// at least one volume has an in-tree source: two CSI sources are compared by handle.
func (d Driver) Same(a, b *v1.PersistentVolume) bool {
	if handle := d.HandleOf(a); handle != "" && handle == d.HandleOf(b) {
		return true
	}
	if a.Spec.CSI != nil && b.Spec.CSI != nil {
		return false
	}
	name := d.Translator.Disk(a)
	return name != "" && name == d.Translator.Disk(b)
}

// source returns the CSI source of the volume, translated if the source is in-tree.
func (d Driver) source(volume *v1.PersistentVolume) (*v1.CSIPersistentVolumeSource, error) {
	if volume.Spec.CSI != nil {
		return volume.Spec.CSI, nil
	}
	translated, err := d.Translator.Volume(volume)
	if err != nil {
		return nil, err
	}
	return translated.Spec.CSI, nil
}
