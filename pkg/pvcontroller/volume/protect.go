package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// handToProtection enqueues the volumes that the pv-protection controller of
// kube-controller-manager enqueues: those to protect, and those that are being deleted.
func (c *Controller) handToProtection(_ context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if finalizer.Has(volume.Finalizers, finalizer.VolumeProtection) == (volume.DeletionTimestamp != nil) {
		c.protections.Enqueue(volume.Name)
	}
	return volume, nil
}

// Protect adds or removes pv-protection where marks and phase are right already. Any
// other volume is handed over again once they are.
func (c *Controller) Protect(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	if volume == nil || !c.Versions.IsFresh(volume) || !c.settled(volume) {
		return nil
	}
	return c.protect(ctx, volume)
}

// settled says whether the loop of volumes has nothing to write to the volume, as far
// as the caches know.
func (c *Controller) settled(volume *v1.PersistentVolume) bool {
	if state, _ := c.marksState(volume); !reclaim.DecideMarks(state).None() {
		return false
	}
	claim := c.Caches.Claim(controller.ClaimKey(volume))
	switch binding.DecideVolume(c.phaseState(observation{volume: volume, claim: claim})).Action {
	case binding.Leave, binding.WakeClaim, binding.ReportMismatch:
		return true
	default:
		return false
	}
}

func (c *Controller) protect(ctx context.Context, volume *v1.PersistentVolume) error {
	claim, err := c.claimOfProtected(ctx, volume)
	if err != nil {
		return err
	}
	change := controller.RequirePhase(patch.For(volume), volume)
	switch protection.DecideVolume(c.protectionOf(volume, volume.Status.Phase, claim)) {
	case protection.Protect:
		finalizer.Edit(change, volume, finalizer.Change{Add: []finalizer.Name{finalizer.VolumeProtection}})
	case protection.Unprotect:
		unprotect(change, volume)
	case protection.Wait, protection.Confirm:
		return nil
	}
	_, err = c.writer.PatchVolume(ctx, volume, change)
	return err
}

// unprotect takes pv-protection off. Where no other finalizer holds the volume
// until it is reclaimed, not even a mark that comes at this moment may be overlooked.
func unprotect(change *patch.Patch, volume *v1.PersistentVolume) {
	if !finalizer.Has(volume.Finalizers, finalizer.External) && !finalizer.Has(volume.Finalizers, finalizer.InTree) {
		change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	}
	finalizer.Edit(change, volume, finalizer.Change{Remove: []finalizer.Name{finalizer.VolumeProtection}})
}

// claimOfProtected compares the volume with its claim. That the claim exists would
// leave a volume without protection that should be reclaimed: it takes a live read.
func (c *Controller) claimOfProtected(ctx context.Context, volume *v1.PersistentVolume) (storage.ClaimRelation, error) {
	cached := storage.ClaimOf(volume, c.Caches.Claim(controller.ClaimKey(volume)))
	reclaimed := c.protectionOf(volume, volume.Status.Phase, storage.ClaimGone)
	if !reclaimed.Held || !reclaimed.Deleting || reclaim.MayReclaim(cached, storage.IsDynamic(volume), true) {
		return cached, nil
	}
	claim, err := controller.LiveClaim(ctx, c.Client, volume)
	if err != nil {
		return cached, err
	}
	return storage.ClaimOf(volume, claim), nil
}

// protectionOf is what is known of a volume that has the phase or is about to get it.
func (c *Controller) protectionOf(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase, claim storage.ClaimRelation) protection.VolumeState {
	return protection.VolumeState{
		Deleting:  volume.DeletionTimestamp != nil,
		Protected: finalizer.Has(volume.Finalizers, finalizer.VolumeProtection),
		Bound:     phase == v1.VolumeBound,
		Held: reclaim.Held(reclaim.HoldState{
			Honor:   c.Honor,
			Plugin:  c.pluginOf(volume),
			Policy:  policyOf(volume),
			Phase:   storage.PhaseOf(phase),
			InTree:  finalizer.Has(volume.Finalizers, finalizer.InTree),
			Mark:    reclaim.MarkOf(volume),
			Claim:   claim,
			Dynamic: storage.IsDynamic(volume),
			Deleted: c.memory.Get(volume.UID).deleted == reclaim.RecyclerMark(volume),
		}),
	}
}
