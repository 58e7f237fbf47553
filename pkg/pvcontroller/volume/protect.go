package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// enqueueProtection enqueues the volumes that the pv-protection controller of
// kube-controller-manager enqueues: volumes without the finalizer, and volumes
// with the finalizer that are being deleted.
func (c *Controller) enqueueProtection(volume *v1.PersistentVolume) {
	if finalizer.Has(volume.Finalizers, finalizer.VolumeProtection) == (volume.DeletionTimestamp != nil) {
		c.protections.Enqueue(volume.Name)
		return
	}
	c.Waiting.Clear(volume.UID, finalizer.VolumeProtection)
}

// Protect adds or removes pv-protection of a volume that needs no other write. Reconcile
// enqueues every other volume again.
func (c *Controller) Protect(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	switch {
	case volume == nil:
		return nil
	case !c.Versions.IsFresh(volume):
		return c.Versions.AwaitVolume(ctx, c.Client, volume)
	case !c.needsNoWrite(volume):
		return nil
	}
	claim, err := c.claimOfProtected(ctx, volume)
	if err != nil {
		return err
	}
	state := c.protectionState(volume, volume.Status.Phase, claim)
	c.trackWait(volume, state)
	switch protection.DecideVolume(state) {
	case protection.ProtectVolume:
		_, err = c.volumes.AddProtection(ctx, volume)
		return c.Reporter.ReportRefusal(volume, addsProtection, err)
	case protection.UnprotectVolume:
		_, err = c.volumes.RemoveProtection(ctx, volume)
		return c.Reporter.ReportRefusal(volume, removesProtection, err)
	case protection.KeepVolume:
	}
	return nil
}

// needsNoWrite reports whether Reconcile, according to the caches, has nothing to write to
// the volume, and the claim's reconciler does not set the phase Bound.
func (c *Controller) needsNoWrite(volume *v1.PersistentVolume) bool {
	if !c.InTree.Metadata(volume).IsEmpty() {
		return false
	}
	switch decision := binding.DecideVolume(c.phaseState(c.observe(volume))); decision.Action {
	case binding.Leave, binding.ReportMismatch:
		return true
	case binding.WakeClaim:
		return decision.Reason != binding.ClaimHere
	default:
		return false
	}
}

// claimOfProtected compares the volume with its claim. The claim is read from the API
// server if the volume would await its reclaim without the claim.
func (c *Controller) claimOfProtected(ctx context.Context, volume *v1.PersistentVolume) (storage.ClaimRelation, error) {
	cached := storage.ClaimOf(volume, c.Caches.Claim(controller.ClaimKey(volume)))
	ifGone := c.protectionState(volume, volume.Status.Phase, storage.ClaimGone)
	if !ifGone.AwaitsReclaim || !ifGone.Deleting || reclaim.MayReclaim(cached, storage.HasProvisioner(volume), true) {
		return cached, nil
	}
	claim, err := controller.LiveClaim(ctx, c.Client, volume)
	if err != nil {
		return cached, err
	}
	return storage.ClaimOf(volume, claim), nil
}

// protectionState returns the state of a volume that has the phase or is about to get it.
func (c *Controller) protectionState(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase,
	claim storage.ClaimRelation) protection.VolumeState {
	return protection.VolumeStateOf(volume, phase, c.InTree.AwaitsReclaim(volume, phase, claim))
}
