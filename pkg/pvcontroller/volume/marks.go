package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// mark writes the in-tree finalizer and the migrated-to annotation, in one patch.
func (c *Controller) mark(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	state, driver := c.marksState(volume)
	marks := reclaim.DecideMarks(state)
	if marks.None() {
		return volume, nil
	}
	var change finalizer.Change
	if marks.AddInTree {
		change.Add = append(change.Add, finalizer.InTree)
	}
	if marks.RemoveInTree {
		change.Remove = append(change.Remove, finalizer.InTree)
	}
	if marks.RemoveExternal {
		change.Remove = append(change.Remove, finalizer.External)
	}
	guarded := patch.For(volume)
	if len(change.Remove) > 0 { // which rests on more than the list: policy, phase, claim
		guarded = patch.ForVersion(volume)
	}
	finalizer.Edit(guarded, volume, change)
	if marks.SetMigrated {
		guarded.Annotate(volume, map[string]string{storage.AnnMigratedTo: driver})
	}
	if marks.ClearMigrated {
		guarded.Remove("/metadata/annotations/" + patch.Escape(storage.AnnMigratedTo))
	}
	return c.writer.PatchVolume(ctx, volume, guarded)
}

func (c *Controller) marksState(volume *v1.PersistentVolume) (reclaim.MarksState, string) {
	driver, migrated := c.Plugins.MigratedTo(volume)
	_, deletes := c.Plugins.DeleterFor(volume)
	ref := volume.Spec.ClaimRef
	return reclaim.MarksState{
		Honor:     c.Honor,
		Origin:    reclaim.OriginOf(volume, migrated, deletes),
		Policy:    policyOf(volume),
		Deleting:  volume.DeletionTimestamp != nil,
		Unclaimed: (ref == nil || ref.UID == "") && volume.Status.Phase != v1.VolumeBound,
		InTree:    finalizer.Has(volume.Finalizers, finalizer.InTree),
		External:  finalizer.Has(volume.Finalizers, finalizer.External),
		Migrated:  reclaim.MigratedToOf(volume, driver),
	}, driver
}

func policyOf(volume *v1.PersistentVolume) storage.Policy {
	return storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy)
}

func (c *Controller) pluginOf(volume *v1.PersistentVolume) reclaim.Plugin {
	_, migrated := c.Plugins.MigratedTo(volume)
	_, deletes := c.Plugins.DeleterFor(volume)
	return reclaim.PluginOf(volume, migrated, deletes)
}
