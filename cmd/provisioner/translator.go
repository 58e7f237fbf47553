package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// namesOf are the driver's name and that of the in-tree plugin that it replaces.
func namesOf(driver *csi.Driver) provisioning.Names {
	names := provisioning.Names{Driver: driver.Name()}
	if plugin, err := csitranslation.New().GetInTreeNameFromCSIName(driver.Name()); err == nil {
		names.Migrated, names.PluginOf = []string{plugin}, intree.NewTranslation().PluginOf
	}
	return names
}

// translator turns what an in-tree plugin made into what its CSI driver knows, and
// back.
type translator struct {
	// plugin: the driver replaces an in-tree plugin.
	plugin bool
}

// Class returns a class of the plugin in terms of the driver.
func (translator) Class(ctx context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	return csitranslation.New().TranslateInTreeStorageClassToCSI(klog.FromContext(ctx), class.Provisioner, class)
}

// Volume returns a volume in CSI terms.
func (translator) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.CSI != nil {
		return volume, nil
	}
	library := csitranslation.New()
	if !library.IsPVMigratable(volume) {
		return nil, fmt.Errorf("volume %s has no CSI source, and its plugin is not migrated to CSI", volume.Name)
	}
	translated, err := library.TranslateInTreePVToCSI(klog.Background(), volume)
	if err != nil {
		return nil, fmt.Errorf("translate volume %s to CSI: %w", volume.Name, err)
	}
	return translated, nil
}

// InTree returns a volume of the driver as one of the plugin.
func (translator) InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	return csitranslation.New().TranslateCSIPVToInTree(volume)
}

// Disk is what the in-tree plugin calls the disk of a volume that is written in its
// terms or the driver's; "" if that cannot be told, or the driver replaces no plugin.
func (t translator) Disk(volume *v1.PersistentVolume) string {
	switch {
	case !t.plugin:
		return ""
	case volume.Spec.CSI == nil:
		return intree.Disk(volume)
	}
	translated, err := t.InTree(volume)
	if err != nil {
		return ""
	}
	return intree.Disk(translated)
}
