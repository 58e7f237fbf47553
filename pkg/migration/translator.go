package migration

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/disk"
)

// Translator translates for one CSI driver.
type Translator struct {
	library csitranslation.CSITranslator
	// replaces: the driver replaced an in-tree plugin.
	replaces bool
}

// For returns the translator of the CSI driver.
func (l Library) For(driver string) Translator {
	_, replaced := l.Plugin(driver)
	return Translator{library: l.library, replaces: replaced}
}

// Class returns a storage class of the plugin as one of the driver.
func (t Translator) Class(ctx context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	return t.library.TranslateInTreeStorageClassToCSI(klog.FromContext(ctx), class.Provisioner, class)
}

// Volume returns the volume with a CSI source: itself, or a translated copy.
func (t Translator) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.CSI != nil {
		return volume, nil
	}
	if !t.library.IsPVMigratable(volume) {
		return nil, fmt.Errorf("volume %s has no CSI source, and its plugin is not migrated to CSI", volume.Name)
	}
	translated, err := t.library.TranslateInTreePVToCSI(klog.Background(), volume)
	if err != nil {
		return nil, fmt.Errorf("translate volume %s to CSI: %w", volume.Name, err)
	}
	return translated, nil
}

// InTree returns a volume of the driver as one of the plugin.
func (t Translator) InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	return t.library.TranslateCSIPVToInTree(volume)
}

// Disk returns the plugin's name of the volume's disk, for an in-tree source and for a
// CSI source. It returns "" if the name is unknown or the driver replaced no plugin.
func (t Translator) Disk(volume *v1.PersistentVolume) string {
	if !t.replaces {
		return ""
	}
	if volume.Spec.CSI != nil {
		var err error
		if volume, err = t.InTree(volume); err != nil {
			return ""
		}
	}
	return disk.PluginName(volume)
}
