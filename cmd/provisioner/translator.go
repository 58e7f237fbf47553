package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
	"github.com/exeunt-io/exeunt/pkg/csi"
)

// namesOf are the driver's name and that of the in-tree plugin that it replaces.
func namesOf(driver *csi.Driver) provisioning.Names {
	names := provisioning.Names{Driver: driver.Name()}
	if plugin, err := csitranslation.New().GetInTreeNameFromCSIName(driver.Name()); err == nil {
		names.Migrated = []string{plugin}
	}
	return names
}

// translator finds the driver's handle of volumes that in-tree plugins made.
type translator struct{}

func (translator) Handle(ctx context.Context, volume *v1.PersistentVolume) (string, error) {
	library := csitranslation.New()
	if !library.IsPVMigratable(volume) {
		return "", fmt.Errorf("volume %s has no CSI source, and its plugin is not migrated to CSI", volume.Name)
	}
	translated, err := library.TranslateInTreePVToCSI(klog.FromContext(ctx), volume)
	if err != nil {
		return "", fmt.Errorf("translate volume %s to CSI: %w", volume.Name, err)
	}
	return translated.Spec.CSI.VolumeHandle, nil
}
