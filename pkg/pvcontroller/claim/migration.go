package claim

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// takenOver returns the CSI driver that has taken over from the in-tree plugin that
// was asked for the claim's volume, "" if none was asked or none has. Known is false
// where nobody was asked, so that nothing can be said.
func (c *Controller) takenOver(claim *v1.PersistentVolumeClaim) (driver string, known bool) {
	asked, known := claim.Annotations[binding.StorageProvisioner]
	if !known {
		asked, known = claim.Annotations[binding.BetaStorageProvisioner]
	}
	if external, _ := c.Plugins.ExternalProvisioner(asked); external != asked {
		driver = external
	}
	return driver, known
}

// mismarked says whether the migrated-to annotation of the claim is not as it should be.
func (c *Controller) mismarked(claim *v1.PersistentVolumeClaim) bool {
	driver, known := c.takenOver(claim)
	return known && claim.Annotations[binding.MigratedTo] != driver
}

func (c *Controller) markMigrated(claim *v1.PersistentVolumeClaim) *patch.Patch {
	driver, _ := c.takenOver(claim)
	if driver == "" {
		return patch.ForVersion(claim).Remove("/metadata/annotations/" + patch.Escape(binding.MigratedTo))
	}
	return patch.ForVersion(claim).Annotate(claim, map[string]string{binding.MigratedTo: driver})
}
