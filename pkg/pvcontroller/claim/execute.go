package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

const yes = "yes"

// execute carries out one action and returns the new observation, or nil if the event of
// the write enqueues the claim.
func (c *Controller) execute(ctx context.Context, o *observation,
	decision binding.ClaimDecision) (*observation, error) {
	switch decision.Action {
	case binding.BindFreeVolume:
		return c.bindVolume(ctx, o, pvwriter.ChosenByController)
	case binding.BindReservedVolume:
		return c.bindVolume(ctx, o, pvwriter.ChosenByPerson)
	case binding.SetVolumePhaseBound:
		return c.setVolumePhaseBound(ctx, o)
	case binding.BindClaim:
		return c.writeClaim(ctx, o, bindClaim(o))
	case binding.CompleteBinding:
		return c.writeClaim(ctx, o, patch.ForVersion(o.claim).Annotate(o.claim,
			map[string]string{storage.AnnBindCompleted: yes}))
	case binding.SetStatusBound:
		return c.setStatusBound(ctx, o)
	case binding.SetStatusPending:
		return c.writeStatus(ctx, o, binding.StatusWithoutVolume(o.claim, v1.ClaimPending))
	case binding.SetStatusLost:
		return c.writeStatus(ctx, o, binding.StatusWithoutVolume(o.claim, v1.ClaimLost))
	case binding.ConfirmVolume:
		return c.confirmVolume(ctx, o)
	case binding.AssignClass:
		return nil, c.assignClass(ctx, o)
	case binding.RequestVolume:
		return c.requestVolume(ctx, o)
	case binding.SetMigratedTo:
		return c.writeClaim(ctx, o, setMigratedTo(o))
	case binding.ProvisionVolume:
		c.InTree.Enqueue(controller.Key(o.claim))
	default: // Wait
	}
	return nil, nil
}

// setStatusBound ends the binding of the claim: its provisioner has served it.
func (c *Controller) setStatusBound(ctx context.Context, o *observation) (*observation, error) {
	if o.state.Requested {
		c.served.add(o.provisioner)
	}
	return c.writeStatus(ctx, o, binding.BoundStatus(o.claim, o.volume))
}

// assignClass sets the default class, and counts the attempt.
func (c *Controller) assignClass(ctx context.Context, o *observation) error {
	_, err := c.writeClaim(ctx, o, patch.ForVersion(o.claim).Set("/spec/storageClassName", o.defaultClass))
	countAssignment(err)
	return err
}

// requestVolume names the provisioner in the claim. A refused write is reported: the claim has no other event.
func (c *Controller) requestVolume(ctx context.Context, o *observation) (*observation, error) {
	next, err := c.writeClaim(ctx, o, requestVolume(o))
	if err != nil && !patch.IsStale(err) && ctx.Err() == nil {
		c.Operations.Failed(o.claim.UID)
	}
	return next, err
}

// reportRefused reports an error that is not about a changed or stale object: the claim has no other event that says
// why it is Pending.
func (c *Controller) reportRefused(ctx context.Context, o *observation, action binding.ClaimAction, err error) {
	switch {
	case patch.IsStale(err) || errors.Is(err, controller.ErrStaleCache) || errors.Is(err, controller.ErrGone) ||
		ctx.Err() != nil:
	case action == binding.RequestVolume:
		c.Reporter.ReportFailure(o.claim, controller.WarningEvent(provisioningFailed,
			fmt.Sprintf("Error saving claim: %v", err)))
	case controller.IsRefusal(err):
		c.Reporter.ReportFailure(o.claim, controller.WarningEvent(failedBinding,
			"A write for the claim was refused, and is repeated: "+controller.RefusalText(err)))
	}
}

func (c *Controller) setVolumePhaseBound(ctx context.Context, o *observation) (*observation, error) {
	volume, err := c.volumes.SetPhase(ctx, o.volume, pvwriter.PhaseChange{Phase: v1.VolumeBound})
	return c.wroteVolume(o, volume, err)
}

func (c *Controller) writeClaim(ctx context.Context, o *observation, change *patch.Patch,
	subresource ...string) (*observation, error) {
	claim, err := c.claims.PatchClaim(ctx, o.claim, change, subresource...)
	if err != nil {
		return nil, err
	}
	return c.Observer.observe(claim, o.volume, o.state.Confirmed), nil
}

func (c *Controller) writeStatus(ctx context.Context, o *observation,
	status *v1.PersistentVolumeClaimStatus) (*observation, error) {
	return c.writeClaim(ctx, o, patch.ForVersion(o.claim).Set("/status", status), "status")
}

// wroteVolume returns the observation after a write of the volume.
func (c *Controller) wroteVolume(o *observation, volume *v1.PersistentVolume, err error) (*observation, error) {
	if err != nil {
		return nil, err
	}
	return c.Observer.observe(o.claim, volume, true), nil
}

// bindVolume sets the volume's claimRef. The volume is no longer free.
func (c *Controller) bindVolume(ctx context.Context, o *observation, choice pvwriter.Choice) (*observation, error) {
	volume, err := c.volumes.SetClaimRef(ctx, o.volume, o.claim, choice)
	switch {
	case err == nil:
		c.remember(o.claim, reservation{name: o.volume.Name})
		c.removeFromIndex(o.volume.Name)
	case !answer.IsDefinite(err):
		c.remember(o.claim, reservation{name: o.volume.Name, unanswered: o.volume.ResourceVersion})
	}
	return c.wroteVolume(o, volume, err)
}

func bindClaim(o *observation) *patch.Patch {
	return patch.ForVersion(o.claim).Set("/spec/volumeName", o.volume.Name).
		Annotate(o.claim, map[string]string{storage.AnnBindCompleted: yes, storage.AnnBoundByController: yes})
}

// confirmVolume reads the volume from the API server, because the cache may be stale: only then is the claim
// Lost, or bound to the volume. A claim without a name looks for a volume anew if the cached one is no longer its own.
func (c *Controller) confirmVolume(ctx context.Context, o *observation) (*observation, error) {
	name := o.claim.Spec.VolumeName
	if name == "" {
		name = o.volume.Name
	}
	volume, err := controller.ReadLive(ctx, "volume", name, c.Client.CoreV1().PersistentVolumes().Get)
	switch {
	case err != nil:
		return nil, err
	case o.claim.Spec.VolumeName == "" && binding.RelationOf(volume, o.claim) != binding.BoundToClaim:
		return nil, controller.ErrStaleCache
	}
	return c.Observer.observe(o.claim, volume, true), nil
}

func requestVolume(o *observation) *patch.Patch {
	return patch.ForVersion(o.claim).Annotate(o.claim, map[string]string{
		storage.AnnStorageProvisioner: o.provisioner, storage.AnnBetaStorageProvisioner: o.provisioner,
	})
}

// setMigratedTo sets the annotation migrated-to to the driver that replaced the requested
// plugin, and removes the annotation if no driver did.
func setMigratedTo(o *observation) *patch.Patch {
	change := patch.ForVersion(o.claim)
	if o.driver == "" {
		return change.Remove("/metadata/annotations/" + patch.Escape(storage.AnnMigratedTo))
	}
	return change.Annotate(o.claim, map[string]string{storage.AnnMigratedTo: o.driver})
}

// report sends the event with the reason why a claim waits, or forgets the last event.
func (c *Controller) report(o *observation, reason binding.Reason) {
	if event, sent := c.eventFor(o, reason); sent {
		existedAtStart := o.claim.CreationTimestamp.Time.Before(c.started)
		c.Reporter.ReportWhen(o.claim, event, func(waited time.Duration) time.Duration {
			return reason.ReportDelay(binding.Waiting{ExistedAtStart: existedAtStart, Waited: waited,
				Served: c.served.lately(o.provisioner)})
		})
		return
	}
	c.Reporter.Forget(o.claim.UID)
}
