package deletion

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// execute carries out one action and returns what is known afterwards, or nil if
// nothing is left to be done now.
func (c *Controller) execute(ctx context.Context, o observation, action external.Action) (*observation, error) {
	if err := c.settle(ctx, o.volume, action); err != nil {
		return nil, err
	}
	switch action {
	case external.Confirm:
		return c.confirm(ctx, o)
	case external.AddFinalizer:
		return c.edit(ctx, o, finalizer.Change{Add: []finalizer.Name{finalizer.External}})
	case external.RemoveFinalizer:
		return c.edit(ctx, o, finalizer.Change{Remove: []finalizer.Name{finalizer.External}})
	case external.DeleteVolume:
		return c.deleteVolume(ctx, o)
	case external.DeleteObject:
		return c.after(o, c.deleteObject(ctx, o.volume))
	case external.SetStatusPending, external.SetStatusDone, external.RemoveStatus:
		return c.mark(ctx, o, action)
	case external.Wait:
	}
	return nil, nil
}

// settle has the journal entry of the volume's claim removed before anything of the
// volume is deleted: an entry without a PersistentVolume has the volume created again.
func (c *Controller) settle(ctx context.Context, volume *v1.PersistentVolume, action external.Action) error {
	if c.Settle == nil || action != external.RemoveFinalizer && action != external.DeleteVolume && action != external.DeleteObject {
		return nil
	}
	if err := c.Settle(ctx, volume); err != nil {
		return c.failed(volume, err)
	}
	return nil
}

// after returns the observation with what is remembered since.
func (c *Controller) after(o observation, err error) (*observation, error) {
	if err != nil {
		return nil, err
	}
	return &observation{volume: o.volume, state: c.stateOf(o.volume, o.state.Claim, o.state.Confirmed)}, nil
}

// edit changes the finalizers. What the decision rests on is tested by the server:
// policy and phase must be those observed.
func (c *Controller) edit(ctx context.Context, o observation, change finalizer.Change) (*observation, error) {
	guarded := controller.RequirePhase(patch.For(o.volume), o.volume).
		Test("/spec/persistentVolumeReclaimPolicy", string(o.volume.Spec.PersistentVolumeReclaimPolicy))
	next, err := c.write(ctx, o, finalizer.Edit(guarded, o.volume, change))
	if err != nil && len(change.Remove) > 0 {
		return nil, c.failed(o.volume, err)
	}
	return next, err
}

// mark asks the pv-controller to hold a volume that was deleted before its
// finalizer came, or lets it know that there is nothing to wait for any more. To
// ask is guarded by the whole version: a volume that is released meanwhile is gone.
func (c *Controller) mark(ctx context.Context, o observation, action external.Action) (*observation, error) {
	key := "/metadata/annotations/" + patch.Escape(reclaim.Annotation)
	switch action {
	case external.SetStatusPending:
		return c.write(ctx, o, patch.ForVersion(o.volume).Annotate(o.volume, map[string]string{reclaim.Annotation: reclaim.AnnotationPending}))
	case external.SetStatusDone:
		return c.write(ctx, o, patch.For(o.volume).Test(key, reclaim.AnnotationPending).Set(key, reclaim.AnnotationDone))
	default:
		return c.write(ctx, o, patch.For(o.volume).Test(key, reclaim.AnnotationPending).Remove(key))
	}
}

// write returns what is known after the patch, or nil if the volume is gone.
func (c *Controller) write(ctx context.Context, o observation, change *patch.Patch) (*observation, error) {
	volume, err := c.writer.PatchVolume(ctx, o.volume, change)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &observation{volume: volume, state: c.stateOf(volume, o.state.Claim, o.state.Confirmed)}, nil
}

// deleteVolume calls the storage system. Success is remembered for the volume's UID.
func (c *Controller) deleteVolume(ctx context.Context, o observation) (*observation, error) {
	start, volume := time.Now(), o.volume
	class := volume.Spec.StorageClassName
	var ignored *backend.Ignored
	switch err := c.Deleter.Delete(ctx, volume); {
	case errors.As(err, &ignored):
		klog.FromContext(ctx).V(4).Info("Volume left to another program", "reason", ignored.Reason)
		c.loop.EnqueueAfter(volume.Name, c.Backoff.Max)
		return nil, nil
	case err != nil:
		return nil, c.failed(volume, err)
	}
	c.memory.Update(volume.UID, func(d *done) { d.volumeDeleted = true })
	c.Metrics.PersistentVolumeDeleteTotal.WithLabelValues(class).Inc()
	c.Metrics.PersistentVolumeDeleteDurationSeconds.WithLabelValues(class).Observe(since(start))
	klog.FromContext(ctx).V(2).Info("Volume deleted in the storage system")
	return c.after(o, nil)
}

// Discard deletes a volume in the storage system that no PersistentVolume records.
func (c *Controller) Discard(ctx context.Context, volume *v1.PersistentVolume, handle string) error {
	return c.Deleter.Discard(ctx, volume, handle)
}

// deleteObject deletes this very PersistentVolume.
func (c *Controller) deleteObject(ctx context.Context, volume *v1.PersistentVolume) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(volume.UID))}
	err := c.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return c.failed(volume, fmt.Errorf("delete volume object %s: %w", volume.Name, err))
	}
	c.memory.Update(volume.UID, func(d *done) { d.objectDeleted = true })
	return nil
}
