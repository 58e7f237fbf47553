package reclaimer

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Metadata returns the change of the in-tree finalizer, the external finalizer and the
// annotation migrated-to, as [plugin.DecideMetadata] decides.
func (c *Controller) Metadata(volume *v1.PersistentVolume) pvwriter.Metadata {
	driver, _ := c.Plugins.MigratedTo(volume)
	return pvwriter.Metadata{Driver: driver, MetadataChange: plugin.DecideMetadata(c.metadataState(volume))}
}

func (c *Controller) metadataState(volume *v1.PersistentVolume) plugin.MetadataState {
	driver, migrated := c.Plugins.MigratedTo(volume)
	_, deletes := c.Plugins.DeleterFor(volume)
	ref := volume.Spec.ClaimRef
	return plugin.MetadataState{
		Honor:     c.Honor,
		Origin:    plugin.OriginOf(volume, migrated, deletes),
		Policy:    policyOf(volume),
		Deleting:  volume.DeletionTimestamp != nil,
		Unclaimed: (ref == nil || ref.UID == "") && volume.Status.Phase != v1.VolumeBound && c.Caches.OwnerOf(volume) == nil,
		InTree:    finalizer.Has(volume.Finalizers, finalizer.InTree),
		External:  finalizer.Has(volume.Finalizers, finalizer.External),
		Migrated:  plugin.MigratedToOf(volume, driver),
	}
}

// countUnprotected counts the volume for the metric if it lacks the in-tree finalizer.
func (c *Controller) countUnprotected(volume *v1.PersistentVolume) {
	c.Unprotected.Set(volume.UID, volume.Status.Phase == v1.VolumeBound && c.metadataState(volume).IsUnprotected())
}

// AwaitsReclaim reports whether pv-protection must stay on a volume in the phase until the
// volume is reclaimed.
func (c *Controller) AwaitsReclaim(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase,
	claim storage.ClaimRelation) bool {
	reclaimer := c.reclaimerOf(volume)
	if reclaimer == plugin.ReclaimerPlugin && c.Plugins.Refuses(volume) { // the wait would not end
		reclaimer = plugin.ReclaimerMissing
	}
	return plugin.NeedsProtection(plugin.ProtectionState{
		Honor:     c.Honor,
		Reclaimer: reclaimer,
		Policy:    policyOf(volume),
		Phase:     storage.PhaseOf(phase),
		InTree:    finalizer.Has(volume.Finalizers, finalizer.InTree),
		Status:    reclaim.StatusOf(volume),
		Claim:     claim,
		Dynamic:   storage.HasProvisioner(volume),
		Deleted:   c.memory.Get(volume.UID).deleted == plugin.DataID(volume),
	})
}

func (c *Controller) reclaimerOf(volume *v1.PersistentVolume) plugin.Reclaimer {
	_, migrated := c.Plugins.MigratedTo(volume)
	_, deletes := c.Plugins.DeleterFor(volume)
	return plugin.ReclaimerOf(volume, migrated, deletes)
}

func policyOf(volume *v1.PersistentVolume) storage.Policy {
	return storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy)
}
