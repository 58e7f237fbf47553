package reclaimer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// execute carries out one action. It returns the new observation, or nil if nothing is
// left to do now.
func (c *Controller) execute(ctx context.Context, o observation, decision plugin.Decision) (*observation, error) {
	switch decision.Action {
	case plugin.Confirm:
		return c.confirm(ctx, o)
	case plugin.DeleteVolume:
		return c.deleteVolume(ctx, o)
	case plugin.DeleteObject:
		return c.deleteObject(ctx, o)
	case plugin.RemoveFinalizer:
		return nil, c.removeFinalizers(ctx, o.volume)
	case plugin.SetPhaseFailed:
		c.trackFailed(o.volume, decision.Reason)
		return nil, c.setFailed(ctx, o.volume, failure(o.volume, decision.Reason))
	case plugin.CreateRecycler:
		return nil, c.createRecycler(ctx, o)
	case plugin.DeleteRecycler:
		c.lookAgain(o.volume) // whatever is answered to the deletion of the pod
		return nil, c.deleteRecycler(ctx, o, decision.Reason)
	case plugin.FinishRecycling:
		return c.finishRecycling(ctx, o)
	case plugin.RetryRecycling:
		return nil, c.retryRecycling(ctx, o)
	case plugin.ReportForbidden:
		c.beginRecycling(o.volume)
		return nil, c.recyclingFailed(ctx, o.volume, o.refusal)
	case plugin.ClearClaimRef:
		return nil, c.clearClaimRef(ctx, o.volume)
	case plugin.Wait:
	}
	return nil, nil
}

// deleteVolume calls the plugin. Success is remembered for this volume and this claim.
func (c *Controller) deleteVolume(ctx context.Context, o observation) (*observation, error) {
	deleter, here := c.Plugins.DeleterFor(o.volume)
	if !here {
		return nil, fmt.Errorf("no in-tree plugin deletes volume %s", o.volume.Name)
	}
	c.trackDeletion(o.volume, blocker.DriverDeletes, false)
	// The claimRef of a volume was removed while the plugin deleted its directory: the volume became Available, and the
	// next claim lost what it had written by then. No claim gets the volume while deleting is set.
	c.memory.Update(o.volume.UID, func(p *progress) { p.deleting = true })
	defer c.endDeletion(o.volume)
	if called, err := c.callDelete(ctx, deleter, o); !called {
		return nil, err
	} else if err != nil {
		return nil, c.retryDeletion(ctx, o.volume, err)
	}
	c.memory.Update(o.volume.UID,
		func(p *progress) { *p = progress{deleted: plugin.DataID(o.volume), deleting: true, unchecked: true} })
	c.Waiting.Clear(o.volume.UID, finalizer.InTree)
	klog.FromContext(ctx).V(2).Info("Volume deleted by its in-tree plugin", "plugin", deleter.Name())
	for _, wake := range c.deleted {
		wake(o.volume.Name)
	}
	if gone, err := c.deleteGivenAway(ctx, o.volume); gone || err != nil {
		return nil, err
	}
	return c.observeAgain(o), nil
}

// callDelete calls the plugin, alone for the volume, unless the lease is about to end.
func (c *Controller) callDelete(ctx context.Context, deleter intree.Deleter, o observation) (called bool, err error) {
	defer c.Locks.Lock(o.volume.Name)()
	if err := cmp.Or(controller.CheckLeading(c.Leading), controller.CheckRead(o.read)); err != nil {
		return false, fmt.Errorf("volume %s is not deleted: %w", o.volume.Name, err)
	}
	return true, c.Operations.Call(deleter.Name(), metrics.Delete, func() error { return deleter.Delete(ctx, o.volume) })
}

// endDeletion lets claims have the volume again.
func (c *Controller) endDeletion(volume *v1.PersistentVolume) {
	c.memory.Update(volume.UID, func(p *progress) { p.deleting = false })
	c.wakeScrubbed(volume.Name)
}

// deleteGivenAway deletes the object of a volume that was given away while its data was being deleted, and reports
// whether it did: nothing is left that a claim could use. Until a call succeeds, no claim may have the volume.
func (c *Controller) deleteGivenAway(ctx context.Context, volume *v1.PersistentVolume) (bool, error) {
	live, err := controller.LiveVolume(ctx, c.Client, volume)
	if err != nil {
		return false, err
	}
	givenAway := live != nil && plugin.DataID(live) != c.memory.Get(volume.UID).deleted
	if givenAway {
		_, err = c.volumes.DeleteObject(ctx, live)
		err = c.reportRefused(ctx, live, err)
	}
	if err == nil {
		c.memory.Update(volume.UID, func(p *progress) { p.unchecked = false })
	}
	return givenAway, err
}

// retryDeletion reports the error of the plugin and enqueues the volume with backoff.
func (c *Controller) retryDeletion(ctx context.Context, volume *v1.PersistentVolume, err error) error {
	c.enqueueWithBackoff(volume)
	if errors.Is(err, intree.ErrInUse) {
		c.Reporter.Report(volume, stillInUse(err))
		c.trackDeletion(volume, blocker.DriverDeletes, true)
		return nil
	}
	c.trackDeletion(volume, blocker.DriverRefuses, true)
	klog.FromContext(ctx).Error(err, "In-tree plugin failed to delete the volume, trying again")
	return c.setFailed(ctx, volume, deletionFailure(err))
}

func (c *Controller) enqueueWithBackoff(volume *v1.PersistentVolume) {
	c.Operations.Failed(volume.UID)
	c.backOff(volume.UID)
	c.loop.EnqueueAfter(volume.Name, c.remainingBackoff(volume.UID))
}

// setFailed sets the phase Failed with the message of the event, and sends the event.
// The same write removes pv-protection if no longer needed.
func (c *Controller) setFailed(ctx context.Context, volume *v1.PersistentVolume, event event) error {
	if volume.Status.Phase != v1.VolumeFailed || volume.Status.Message != event.Message {
		awaitsReclaim := c.AwaitsReclaim(volume, v1.VolumeFailed, storage.ClaimGone)
		phase := pvwriter.PhaseChange{
			Phase: v1.VolumeFailed, Message: event.Message,
			RemoveProtection: protection.RemovesWithPhase(volume, v1.VolumeFailed, awaitsReclaim),
		}
		if _, err := c.volumes.SetPhase(ctx, volume, phase); err != nil {
			return c.Reporter.ReportRefusal(volume, fmt.Sprintf("Writing the phase Failed (%s)", event.Message), err)
		}
	}
	c.Reporter.ReportFailure(volume, event)
	return nil
}

// lookAgain enqueues the volume after RequeueAfter.
func (c *Controller) lookAgain(volume *v1.PersistentVolume) {
	if c.RequeueAfter > 0 {
		c.loop.EnqueueAfter(volume.Name, c.RequeueAfter)
	}
}

// deleteObject deletes the PersistentVolume. Its finalizers are removed in the same pass.
func (c *Controller) deleteObject(ctx context.Context, o observation) (*observation, error) {
	now, err := c.volumes.DeleteObject(ctx, o.volume)
	if err != nil || now == nil {
		return nil, c.reportRefused(ctx, o.volume, err)
	}
	o.volume = now
	return c.observeAgain(o), nil
}

// removeFinalizers removes the finalizers that kept the volume for its in-tree plugin.
func (c *Controller) removeFinalizers(ctx context.Context, volume *v1.PersistentVolume) error {
	_, err := c.volumes.RemoveReclaimFinalizers(ctx, volume)
	if errors.Is(err, controller.ErrGone) {
		return nil
	}
	return c.reportRefused(ctx, volume, err)
}

// reportRefused reports an error that is not about a changed object, and returns it: the data is gone, the object stays.
func (c *Controller) reportRefused(ctx context.Context, volume *v1.PersistentVolume, err error) error {
	if err != nil && !patch.IsStale(err) && ctx.Err() == nil {
		c.Reporter.ReportFailure(volume, deletionFailure(err))
	}
	return err
}

// clearClaimRef makes a recycled volume usable for another claim. Package volume sets the
// phase Available. If the write is refused, the volume is recycled again.
func (c *Controller) clearClaimRef(ctx context.Context, volume *v1.PersistentVolume) error {
	now, err := c.volumes.ClearClaimRef(ctx, volume)
	if err == nil && storage.ClaimOf(now, nil) != storage.ClaimNone { // no event may follow
		err = controller.ErrTooManySteps
	}
	switch {
	case patch.IsStale(err):
		return err
	case err != nil:
		return c.recyclingFailed(ctx, volume, err)
	}
	c.memory.Forget(volume.UID)
	return nil
}
