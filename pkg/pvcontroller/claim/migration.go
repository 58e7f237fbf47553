package claim

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// takenOver returns the CSI driver that has taken over from the in-tree plugin that
// was asked for the claim's volume, "" if none was asked or none has. Known is false
// where nobody was asked, so that nothing can be said.
func (c *Controller) takenOver(claim *v1.PersistentVolumeClaim) (driver string, known bool) {
	asked, known := claim.Annotations[storage.AnnStorageProvisioner]
	if !known {
		asked, known = claim.Annotations[storage.AnnBetaStorageProvisioner]
	}
	if external, _ := c.Plugins.ExternalProvisioner(asked); external != asked {
		driver = external
	}
	return driver, known
}

// mismarked says whether the migrated-to annotation of the claim is not as it should be.
func (c *Controller) mismarked(claim *v1.PersistentVolumeClaim) bool {
	driver, known := c.takenOver(claim)
	return known && claim.Annotations[storage.AnnMigratedTo] != driver
}

func (c *Controller) markMigrated(claim *v1.PersistentVolumeClaim) *patch.Patch {
	driver, _ := c.takenOver(claim)
	if driver == "" {
		return patch.ForVersion(claim).Remove("/metadata/annotations/" + patch.Escape(storage.AnnMigratedTo))
	}
	return patch.ForVersion(claim).Annotate(claim, map[string]string{storage.AnnMigratedTo: driver})
}
