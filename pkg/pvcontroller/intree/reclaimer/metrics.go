package reclaimer

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// measureDeletion notes the begin of the deletion of a volume, by a plugin or by an
// external provisioner.
func (c *Controller) measureDeletion(volume *v1.PersistentVolume) {
	if isReleased(volume) && policyOf(volume) == storage.PolicyDelete &&
		c.reclaimerOf(volume) != plugin.ReclaimerMigrated {
		c.Operations.Begin(volume.UID, c.deleterName(volume), metrics.Delete)
	}
}

// deleterName returns the plugin_name label: the plugin that deletes the volume, or the
// provisioner of the volume's class.
func (c *Controller) deleterName(volume *v1.PersistentVolume) string {
	if c.reclaimerOf(volume) != plugin.ReclaimerExternal {
		if deleter, here := c.Plugins.DeleterFor(volume); here {
			return deleter.Name()
		}
		return metrics.Unknown
	}
	class := c.Caches.Class(volume.Spec.StorageClassName)
	if class == nil {
		return metrics.Unknown
	}
	name, _ := c.Plugins.ExternalProvisioner(class.Provisioner)
	return name
}
