package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a volume and the claim that has the name it refers to.
type observation struct {
	volume    *v1.PersistentVolume
	claim     *v1.PersistentVolumeClaim
	confirmed bool
}

func (c *Controller) phaseState(o observation) binding.VolumeState {
	return binding.VolumeState{
		Claim:       storage.ClaimOf(o.volume, o.claim),
		ModesDiffer: o.claim != nil && !binding.SameMode(o.volume, o.claim),
		Phase:       storage.PhaseOf(o.volume.Status.Phase),
		Disposable:  storage.IsDynamic(o.volume) && o.volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete,
		Doomed:      c.Honor && o.volume.DeletionTimestamp != nil,
		Confirmed:   o.confirmed,
	}
}

// setPhase decides and executes until the phase is right; it returns the volume
// as it is then.
func (c *Controller) setPhase(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	o := observation{volume: volume, claim: c.Caches.Claim(controller.ClaimKey(volume))}
	for steps := new(controller.StepCounter); ; {
		decision := binding.DecideVolume(c.phaseState(o))
		switch decision.Action {
		case binding.Leave:
			return o.volume, nil
		case binding.WakeClaim:
			c.WakeClaim(controller.ClaimKey(o.volume))
			return o.volume, nil
		case binding.ReportMismatch:
			c.reportMismatch(o)
			return o.volume, nil
		default:
			klog.FromContext(ctx).V(4).Info("Decided on volume", "reason", decision.Reason, "claim", controller.ClaimKey(o.volume))
		}
		err := steps.Next()
		if err != nil {
			return nil, err
		}
		if o, err = c.execute(ctx, o, decision.Action); err != nil {
			return nil, err
		}
	}
}

// execute carries out one action and returns what is known afterwards.
func (c *Controller) execute(ctx context.Context, o observation, action binding.VolumeAction) (observation, error) {
	var err error
	switch action {
	case binding.ConfirmClaim:
		return c.confirm(ctx, o)
	case binding.MarkAvailable:
		o.volume, err = c.writePhase(ctx, o.volume, v1.VolumeAvailable, "")
	case binding.MarkBoundPhase:
		o.volume, err = c.writePhase(ctx, o.volume, v1.VolumeBound, "")
	case binding.Release:
		o.volume, err = c.writePhase(ctx, o.volume, v1.VolumeReleased, "")
		c.reportNeverBound(o, err)
	case binding.GiveBack:
		o.volume, err = c.giveBack(ctx, o.volume)
	case binding.Leave, binding.WakeClaim, binding.ReportMismatch:
	}
	return o, err
}

// confirm reads the claim live, whatever the cache says of it.
func (c *Controller) confirm(ctx context.Context, o observation) (observation, error) {
	claim, err := controller.LiveClaim(ctx, c.Client, o.volume)
	if err != nil {
		return o, err
	}
	return observation{volume: o.volume, claim: claim, confirmed: true}, nil
}

// writePhase sets the phase, and in the same write takes pv-protection off a
// volume that is being deleted and no longer bound, unless the volume is still to be
// reclaimed: then protect looks at the claim again. It fails as stale if phase,
// claim or finalizers changed meanwhile.
func (c *Controller) writePhase(ctx context.Context, volume *v1.PersistentVolume, phase v1.PersistentVolumePhase, message string) (*v1.PersistentVolume, error) {
	change := controller.RequirePhase(patch.For(volume), volume)
	switch ref := volume.Spec.ClaimRef; {
	case ref == nil:
		change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	case ref.UID != "":
		change.Test("/spec/claimRef/uid", string(ref.UID))
	}
	change.Set("/status/phase", string(phase))
	if volume.Status.Message != message {
		change.Set("/status/message", message)
	}
	if protection.DecideVolume(c.protectionOf(volume, phase, storage.ClaimGone)) == protection.Unprotect {
		unprotect(change, volume)
	}
	return c.writer.PatchVolume(ctx, volume, change, "status")
}

// giveBack takes back a binding that lost to another volume: wholly where a
// controller chose the claim, else only its UID, so that the volume stays
// reserved for the name.
func (c *Controller) giveBack(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	change := patch.ForVersion(volume)
	if _, ours := volume.Annotations[storage.AnnBoundByController]; ours {
		change.Remove("/spec/claimRef").Remove("/metadata/annotations/" + patch.Escape(storage.AnnBoundByController))
	} else {
		change.Remove("/spec/claimRef/uid")
	}
	return c.writer.PatchVolume(ctx, volume, change)
}
