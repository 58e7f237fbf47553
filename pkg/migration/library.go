package migration

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// Library is the table of migrated plugins that Kubernetes ships. Every plugin in the
// table counts as migrated.
type Library struct {
	library csitranslation.CSITranslator
}

// New returns the library.
func New() Library {
	return Library{library: csitranslation.New()}
}

// Driver returns the CSI driver that replaced the plugin, and false for a plugin that
// is not migrated.
func (l Library) Driver(plugin string) (driver string, migrated bool) {
	if !l.library.IsMigratableIntreePluginByName(plugin) {
		return "", false
	}
	driver, err := l.library.GetCSINameFromInTreeName(plugin)
	return driver, err == nil
}

// Plugin returns the in-tree plugin that the CSI driver replaced, and false for a
// driver that replaced none.
func (l Library) Plugin(driver string) (plugin string, replaced bool) {
	plugin, err := l.library.GetInTreeNameFromCSIName(driver)
	return plugin, err == nil
}

// IsMigratedDriver reports whether the CSI driver replaced an in-tree plugin.
func (l Library) IsMigratedDriver(driver string) bool {
	return l.library.IsMigratedCSIDriverByName(driver)
}

// Inline returns the inline volume of a pod in the namespace as a PersistentVolume with a
// CSI source, nil for a volume whose plugin is not migrated.
func (l Library) Inline(volume *v1.Volume, namespace string) (*v1.PersistentVolume, error) {
	if !l.library.IsInlineMigratable(volume) {
		return nil, nil
	}
	translated, err := l.library.TranslateInTreeInlineVolumeToCSI(klog.Background(), volume, namespace)
	if err != nil {
		return nil, fmt.Errorf("translate inline volume %s to CSI: %w", volume.Name, err)
	}
	return translated, nil
}

// PluginOf returns the name of the migrated plugin of the volume's source, "" for any
// other source.
func (l Library) PluginOf(volume *v1.PersistentVolume) string {
	plugin, err := l.library.GetInTreePluginNameFromSpec(volume, nil)
	if err != nil {
		return ""
	}
	return plugin
}
