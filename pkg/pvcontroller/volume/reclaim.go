package volume

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// handOver has a volume reclaimed whose phase says that its claim has let go.
func (c *Controller) handOver(_ context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if isOver(volume) {
		c.reclaims.Enqueue(volume.Name)
	}
	return volume, nil
}

func isOver(volume *v1.PersistentVolume) bool {
	return volume.Status.Phase == v1.VolumeReleased || volume.Status.Phase == v1.VolumeFailed
}

// Reclaim observes one volume and takes step after step towards reclaiming it by
// its in-tree plugin, until there is nothing left to do but wait.
func (c *Controller) Reclaim(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	switch {
	case volume == nil:
		return c.removeRecyclersOf(ctx, name)
	case !c.Versions.IsFresh(volume):
		return nil
	}
	c.measureDeletion(volume)
	steps := new(controller.StepCounter)
	for o := c.observeReclaim(volume); ; {
		decision := reclaim.DecideInTree(o.state)
		switch wait := c.postponed(volume.UID); {
		case decision.Action == reclaim.Wait:
			c.await(ctx, o, decision.Reason)
			return nil
		case tries(decision.Action) && wait > 0:
			c.reclaims.EnqueueAfter(name, wait)
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on the reclaim of a volume", "reason", decision.Reason)
		if err := steps.Next(); err != nil {
			return err
		}
		next, err := c.step(ctx, o, decision)
		if err != nil || next == nil {
			return err
		}
		o = *next
	}
}

// await tells on whom the volume waits, and has it looked at again though no event
// should come.
func (c *Controller) await(ctx context.Context, o reclaimed, reason reclaim.Reason) {
	c.reportWait(o, reason)
	if reason == reclaim.RecyclerBusy && o.state.Recycler == reclaim.RecyclerRuns {
		c.tellEvents(ctx, o)
	}
	waits := reason == reclaim.HandleShared || reason == reclaim.VolumeUsed || reason == reclaim.RecyclerBusy
	if waits && c.LookAgain > 0 {
		c.reclaims.EnqueueAfter(o.volume.Name, c.LookAgain)
	}
}

// tries says whether the action begins another try, which waits after a failure.
func tries(action reclaim.Action) bool {
	return action == reclaim.Confirm || action == reclaim.DeleteVolume || action == reclaim.StartRecycler
}

// step carries out one action and returns what is known afterwards, or nil if
// nothing is left to be done now.
func (c *Controller) step(ctx context.Context, o reclaimed, decision reclaim.Decision) (*reclaimed, error) {
	switch decision.Action {
	case reclaim.Confirm:
		return c.confirmReclaim(ctx, o)
	case reclaim.DeleteVolume:
		return c.deleteVolume(ctx, o)
	case reclaim.DeleteObject:
		return c.deleteObject(ctx, o)
	case reclaim.Unprotect:
		return nil, c.letGo(ctx, o.volume)
	case reclaim.Fail:
		return nil, c.fail(ctx, o.volume, failure(o.volume, decision.Reason))
	case reclaim.StartRecycler:
		return nil, c.startRecycler(ctx, o)
	case reclaim.RemoveRecycler:
		return nil, c.removeRecycler(ctx, o, decision.Reason)
	case reclaim.FinishRecycling:
		return c.finishRecycling(ctx, o)
	case reclaim.RetryRecycling:
		return nil, c.retryRecycling(ctx, o)
	case reclaim.MakeAvailable:
		return nil, c.makeAvailable(ctx, o.volume)
	case reclaim.Wait, reclaim.Protect, reclaim.MarkVolume, reclaim.CloseMark, reclaim.DropMark:
	}
	return nil, nil
}

// deleteVolume calls the plugin. Success is remembered for this volume and this claim.
func (c *Controller) deleteVolume(ctx context.Context, o reclaimed) (*reclaimed, error) {
	deleter, here := c.Plugins.DeleterFor(o.volume)
	if !here {
		return nil, fmt.Errorf("find plugin of volume %s: it was there a moment ago", o.volume.Name)
	}
	err := c.Operations.Call(deleter.Name(), metrics.Delete, func() error {
		defer c.Locks.Lock(o.volume.Name)()
		return deleter.Delete(ctx, o.volume)
	})
	if err != nil {
		return nil, c.deletionFailed(ctx, o.volume, err)
	}
	c.memory.Update(o.volume.UID, func(p *progress) { *p = progress{deleted: reclaim.RecyclerMark(o.volume)} })
	klog.FromContext(ctx).V(2).Info("Volume deleted by its in-tree plugin", "plugin", deleter.Name())
	c.loop.Enqueue(o.volume.Name) // pv-protection may have held the volume until now
	return c.again(o), nil
}

// deletionFailed has the plugin asked again later.
func (c *Controller) deletionFailed(ctx context.Context, volume *v1.PersistentVolume, err error) error {
	c.Operations.Failed(volume.UID)
	c.postpone(volume.UID)
	c.reclaims.EnqueueAfter(volume.Name, c.postponed(volume.UID))
	if errors.Is(err, intree.ErrInUse) {
		c.Reporter.Report(volume, stillInUse(err))
		return nil
	}
	klog.FromContext(ctx).Error(err, "In-tree plugin failed to delete the volume, trying again")
	return c.fail(ctx, volume, deletionFailure(err))
}

// fail shows why a volume that should be reclaimed is not.
func (c *Controller) fail(ctx context.Context, volume *v1.PersistentVolume, event event) error {
	if volume.Status.Phase != v1.VolumeFailed || volume.Status.Message != event.Message {
		if _, err := c.writePhase(ctx, volume, v1.VolumeFailed, event.Message); err != nil {
			return err
		}
	}
	c.Reporter.Report(volume, event)
	return nil
}

// deleteObject deletes this very version of the PersistentVolume: another one may
// refer to another claim.
func (c *Controller) deleteObject(ctx context.Context, o reclaimed) (*reclaimed, error) {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.volume.UID, ResourceVersion: &o.volume.ResourceVersion}}
	err := c.Client.CoreV1().PersistentVolumes().Delete(ctx, o.volume.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("delete volume object %s: %w", o.volume.Name, err)
	}
	c.memory.Update(o.volume.UID, func(p *progress) { p.objectDeleted = true })
	return c.again(o), nil
}

// letGo takes off the finalizers that held the volume for its in-tree plugin.
func (c *Controller) letGo(ctx context.Context, volume *v1.PersistentVolume) error {
	change := finalizer.Change{Remove: []finalizer.Name{finalizer.InTree, finalizer.External}}
	_, err := c.writer.PatchVolume(ctx, volume, finalizer.Edit(patch.For(volume), volume, change))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// measureDeletion notes when the deletion of a volume has begun.
func (c *Controller) measureDeletion(volume *v1.PersistentVolume) {
	if isOver(volume) && policyOf(volume) == storage.PolicyDelete && c.pluginOf(volume) != reclaim.Migrated {
		c.Operations.Begin(volume.UID, c.operator(volume), metrics.Delete)
	}
}

// operator is who deletes the volume, as the metrics name it: a plugin here, or
// the provisioner of the volume's class.
func (c *Controller) operator(volume *v1.PersistentVolume) string {
	if c.pluginOf(volume) != reclaim.External {
		if deleter, here := c.Plugins.DeleterFor(volume); here {
			return deleter.Name()
		}
		return metrics.Unknown
	}
	class := c.Caches.Class(volume.Spec.StorageClassName)
	if class == nil {
		return metrics.Unknown
	}
	name, _ := c.Plugins.ExternalProvisioner(class.Provisioner)
	return name
}
