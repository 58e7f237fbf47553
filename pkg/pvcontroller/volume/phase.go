package volume

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a volume and the claim with the name that the volume refers to.
type observation struct {
	volume *v1.PersistentVolume
	claim  *v1.PersistentVolumeClaim
	// owner is the claim that was bound to the volume, if the volume has no claimRef.
	owner *v1.PersistentVolumeClaim
	// confirmed: the claim was read from the API server.
	confirmed bool
}

// observe reads the caches only.
func (c *Controller) observe(volume *v1.PersistentVolume) observation {
	return observation{volume: volume, claim: c.Caches.Claim(controller.ClaimKey(volume)), owner: c.Caches.OwnerOf(volume)}
}

// claimKey returns the key of the claim whose reconciler goes on.
func (o observation) claimKey() string {
	if o.volume.Spec.ClaimRef == nil && o.owner != nil {
		return controller.Key(o.owner)
	}
	return controller.ClaimKey(o.volume)
}

func (c *Controller) phaseState(o observation) binding.VolumeState {
	return binding.VolumeState{
		Claim:       storage.ClaimOf(o.volume, o.claim),
		ModesDiffer: o.claim != nil && !binding.SameMode(o.volume, o.claim),
		Phase:       storage.PhaseOf(o.volume.Status.Phase),
		DynamicDelete: storage.HasProvisioner(o.volume) &&
			o.volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete,
		Deleting:  c.Honor && o.volume.DeletionTimestamp != nil,
		Scrubbed:  c.InTree.IsScrubbed(o.volume),
		Owned:     o.owner != nil && o.volume.Spec.ClaimRef == nil,
		Confirmed: o.confirmed,
	}
}

// setPhase decides and executes until the phase is right. It returns the volume as it
// is then.
func (c *Controller) setPhase(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	o := c.observe(volume)
	for steps := new(controller.StepCounter); ; {
		state := c.phaseState(o)
		decision := binding.DecideVolume(state)
		switch decision.Action {
		case binding.Leave:
			c.reportScrubbed(o.volume, decision.Reason)
			return o.volume, nil
		case binding.WakeClaim:
			c.WakeClaim(o.claimKey())
			return o.volume, nil
		case binding.ReportMismatch:
			c.reportMismatch(o)
			return o.volume, nil
		default:
			klog.FromContext(ctx).V(4).Info("Decided on volume", "action", decision.Action, "reason", decision.Reason, "claim",
				controller.ClaimKey(o.volume), "state", state)
		}
		err, before := steps.Next(), o.volume
		if err == nil {
			o, err = c.execute(ctx, o, decision.Action)
		}
		if err != nil {
			return nil, c.Reporter.ReportRefusal(before, writeOf(decision.Action), err)
		}
	}
}

// execute carries out one action and returns the new observation.
func (c *Controller) execute(ctx context.Context, o observation, action binding.VolumeAction) (observation, error) {
	var err error
	switch action {
	case binding.ConfirmClaim:
		return c.confirmClaim(ctx, o)
	case binding.SetPhaseAvailable:
		o.volume, err = c.volumes.SetPhase(ctx, o.volume, c.phaseChange(o.volume, v1.VolumeAvailable))
	case binding.SetPhaseBound:
		o.volume, err = c.volumes.SetPhase(ctx, o.volume, c.phaseChange(o.volume, v1.VolumeBound))
	case binding.SetPhaseReleased:
		c.InTree.Released(o.volume)
		o.volume, err = c.volumes.SetPhase(ctx, o.volume, c.phaseChange(o.volume, v1.VolumeReleased))
		c.reportNeverBound(o, err)
	case binding.ClearClaimRef:
		o.volume, err = c.volumes.ClearClaimRef(ctx, o.volume)
	case binding.Leave, binding.WakeClaim, binding.ReportMismatch:
	}
	return o, err
}

// confirmClaim reads the claim from the API server, or the owner of a volume without a claimRef.
func (c *Controller) confirmClaim(ctx context.Context, o observation) (observation, error) {
	if o.volume.Spec.ClaimRef == nil {
		owner, err := c.liveOwner(ctx, o.volume)
		return observation{volume: o.volume, owner: owner, confirmed: true}, err
	}
	claim, err := controller.LiveClaim(ctx, c.Client, o.volume)
	if err != nil {
		return o, err
	}
	return observation{volume: o.volume, claim: claim, confirmed: true}, nil
}

// claimsPerPage bounds the answer to a list of claims.
const claimsPerPage = 500

// liveOwner reads all claims from the API server, which cannot select those that name the volume. It is called for a
// Bound volume that lost its claimRef, as by kubectl replace, and whose claim no cache shows. kube-controller-manager
// makes such a volume Available, and the first claim that fits gets it, with the data of the claim that lost it.
func (c *Controller) liveOwner(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	var naming []*v1.PersistentVolumeClaim
	for page := (metav1.ListOptions{Limit: claimsPerPage}); ; {
		list, err := answer.CheckedList(c.Client.CoreV1().PersistentVolumeClaims("").List(ctx, page))
		if err != nil {
			return nil, fmt.Errorf("look for the claim of volume %s: %w", volume.Name, err)
		}
		for i := range list.Items {
			if list.Items[i].Spec.VolumeName == volume.Name {
				naming = append(naming, &list.Items[i])
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return binding.Owner(volume, naming), nil
		}
	}
}

// phaseChange adds the removal of pv-protection to the write of a phase other than
// Bound, so that no volume is Released but still protected. A volume that must be
// reclaimed first keeps the finalizer; Protect reads its claim again.
func (c *Controller) phaseChange(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase) pvwriter.PhaseChange {
	awaitsReclaim := c.InTree.AwaitsReclaim(volume, phase, storage.ClaimGone)
	return pvwriter.PhaseChange{Phase: phase, RemoveProtection: protection.RemovesWithPhase(volume, phase, awaitsReclaim)}
}
