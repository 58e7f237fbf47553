package intree

import (
	v1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
)

// Migration knows which in-tree plugins a CSI driver has taken over.
type Migration interface {
	// Driver returns the CSI driver that has taken over the plugin, and false for
	// a plugin that is not migrated.
	Driver(plugin string) (driver string, migrated bool)
	// PluginOf returns the name of the plugin of the volume's source, "" for a
	// source that was never migrated.
	PluginOf(volume *v1.PersistentVolume) string
}

// Translation is the migration of Kubernetes: every plugin that its translation
// library knows is migrated.
type Translation struct {
	library csitranslation.CSITranslator
}

// NewTranslation returns the migration of Kubernetes.
func NewTranslation() Translation {
	return Translation{library: csitranslation.New()}
}

// Driver implements [Migration].
func (t Translation) Driver(plugin string) (string, bool) {
	if !t.library.IsMigratableIntreePluginByName(plugin) {
		return "", false
	}
	driver, err := t.library.GetCSINameFromInTreeName(plugin)
	return driver, err == nil
}

// PluginOf implements [Migration].
func (t Translation) PluginOf(volume *v1.PersistentVolume) string {
	plugin, err := t.library.GetInTreePluginNameFromSpec(volume, nil)
	if err != nil {
		return ""
	}
	return plugin
}
