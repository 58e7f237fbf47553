package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
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
	guarded := finalizer.Edit(patch.For(volume), volume, change)
	if marks.SetMigrated {
		guarded.Annotate(volume, map[string]string{binding.MigratedTo: driver})
	}
	if marks.ClearMigrated {
		guarded.Remove("/metadata/annotations/" + patch.Escape(binding.MigratedTo))
	}
	return c.writer.Volume(ctx, volume, guarded)
}

func (c *Controller) marksState(volume *v1.PersistentVolume) (reclaim.MarksState, string) {
	driver, migrated := c.MigratedTo(volume)
	return reclaim.MarksState{
		Honor:    c.Honor,
		Origin:   reclaim.OriginOf(volume, migrated, false),
		Policy:   policyOf(volume),
		Deleting: volume.DeletionTimestamp != nil,
		InTree:   finalizer.Has(volume.Finalizers, finalizer.InTree),
		External: finalizer.Has(volume.Finalizers, finalizer.External),
		Migrated: reclaim.MigratedToOf(volume, driver),
	}, driver
}

// reclaim takes the pv-controller's part once the claim has let go: none for
// volumes of external provisioners, and Failed where no plugin can do it.
func (c *Controller) reclaim(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Status.Phase != v1.VolumeReleased && volume.Status.Phase != v1.VolumeFailed {
		return volume, nil
	}
	decision := reclaim.DecideInTree(reclaim.InTreeState{
		Honor:     c.Honor,
		Plugin:    reclaim.PluginOf(volume, false),
		Policy:    policyOf(volume),
		Deleting:  volume.DeletionTimestamp != nil,
		Protected: finalizer.Has(volume.Finalizers, finalizer.InTree),
		Claim:     claimOf(volume, c.Caches.Claim(controller.ClaimKey(volume))),
	})
	if decision.Action != reclaim.Fail {
		return volume, nil
	}
	event := failure(volume, decision.Reason)
	if volume.Status.Phase != v1.VolumeFailed {
		failed, err := c.writePhase(ctx, volume, v1.VolumeFailed, event.Message)
		if err != nil {
			return nil, err
		}
		volume = failed
	}
	c.Reporter.Report(volume, event)
	return volume, nil
}

func policyOf(volume *v1.PersistentVolume) reclaim.Policy {
	return reclaim.PolicyOf(string(volume.Spec.PersistentVolumeReclaimPolicy))
}

func claimOf(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) reclaim.Claim {
	switch claimantOf(volume, claim) {
	case binding.NoClaimant:
		return reclaim.NoClaim
	case binding.Gone:
		return reclaim.ClaimGone
	case binding.BoundElsewhere:
		return reclaim.ClaimElsewhere
	case binding.Unbound, binding.Incompatible, binding.BoundHere:
	}
	return reclaim.ClaimHolds
}
