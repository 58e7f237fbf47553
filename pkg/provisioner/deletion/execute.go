package deletion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// execute executes one action and returns the observation after the action, nil if nothing
// is left to do now.
func (c *Controller) execute(ctx context.Context, o observation, action external.Action) (*observation, error) {
	if removed, err := c.removeEntry(ctx, o.volume, action); err != nil {
		return nil, err
	} else if action == external.DeleteVolume && (removed || o.prepared == nil) {
		// The removal of the entry is a write of the journal, which takes up to a second and more. A user who set
		// the policy to Retain meanwhile keeps the data: volume and claim are read once more.
		return c.confirm(ctx, o)
	}
	switch action {
	case external.Confirm:
		return c.confirm(ctx, o)
	case external.AddFinalizer:
		return c.editFinalizers(ctx, o, finalizer.Change{Add: []finalizer.Name{finalizer.External}})
	case external.RemoveFinalizer:
		return c.editFinalizers(ctx, o, finalizer.Change{Remove: []finalizer.Name{finalizer.External}})
	case external.DeleteVolume:
		return c.deleteVolume(ctx, o)
	case external.DeleteObject:
		return c.deleteObject(ctx, o)
	case external.SetStatusPending, external.SetStatusDone, external.RemoveStatus:
		return c.setStatus(ctx, o, action)
	case external.Wait:
	}
	return nil, nil
}

// removeEntry has the journal entry of the volume's claim removed before anything of the volume is deleted. The
// next leader repeats the request of an entry that no PersistentVolume records: after a crash between both
// deletions it would create an empty disk for a claim whose data is gone. It reports whether there was an entry.
func (c *Controller) removeEntry(ctx context.Context, volume *v1.PersistentVolume,
	action external.Action) (bool, error) {
	deletes := action == external.RemoveFinalizer || action == external.DeleteVolume || action == external.DeleteObject
	if c.RemoveEntry == nil || !deletes {
		return false, nil
	}
	removed, err := c.RemoveEntry(ctx, volume)
	if err != nil && !errors.Is(err, controller.ErrStaleCache) {
		c.track(volume, blocker.JournalEntry, "", true)
		err = c.countFailure(volume, err)
	}
	return removed, err
}

// withProgress returns the observation with the progress that was noted since.
func (c *Controller) withProgress(o observation, err error) (*observation, error) {
	if err != nil {
		return nil, err
	}
	return new(c.observe(o.volume)), nil
}

// editFinalizers changes the finalizers. The patch tests the policy and the phase that the decision used: without
// the finalizer a volume that was released or set to Delete meanwhile would be deleted, and its disk be left
// behind.
func (c *Controller) editFinalizers(ctx context.Context, o observation, change finalizer.Change) (*observation, error) {
	guarded := controller.RequirePhase(patch.For(o.volume), o.volume).
		Test("/spec/persistentVolumeReclaimPolicy", string(o.volume.Spec.PersistentVolumeReclaimPolicy))
	next, err := c.write(ctx, o, finalizer.Edit(guarded, o.volume, change))
	switch {
	case err == nil:
		return next, nil
	case len(change.Remove) > 0:
		return nil, c.countFailure(o.volume, err)
	}
	return nil, c.Reporter.ReportRefusal(o.volume, addsFinalizer, err)
}

// setStatus writes or removes the annotation exeunt.io/reclaim. SetStatusPending tests the
// whole version: the pv-controller may have released the volume meanwhile, without waiting.
func (c *Controller) setStatus(ctx context.Context, o observation, action external.Action) (*observation, error) {
	key := "/metadata/annotations/" + patch.Escape(reclaim.Annotation)
	change := patch.For(o.volume).Test(key, reclaim.AnnotationPending)
	switch action {
	case external.SetStatusPending:
		change = patch.ForVersion(o.volume).Annotate(o.volume,
			map[string]string{reclaim.Annotation: reclaim.AnnotationPending})
	case external.SetStatusDone:
		change.Set(key, reclaim.AnnotationDone)
	default:
		change.Remove(key)
	}
	next, err := c.write(ctx, o, change)
	return next, c.Reporter.ReportRefusal(o.volume, writesStatus, err)
}

// write returns the observation after the patch, nil if the volume is gone.
func (c *Controller) write(ctx context.Context, o observation, change *patch.Patch) (*observation, error) {
	volume, err := c.writer.PatchVolume(ctx, o.volume, change)
	switch {
	case errors.Is(err, controller.ErrGone):
		c.noteGone(o.volume)
		return nil, nil
	case err != nil:
		return nil, err
	case volume.DeletionTimestamp != nil && len(volume.Finalizers) == 0:
		c.noteGone(volume)
	case volume.DeletionTimestamp == nil && c.memory.Get(volume.UID).objectDeleted:
		// A proxy or webhook answered the deletion, and nothing was deleted. Taken for deleted, the object would
		// stay for ever, and a claim could be bound to it although its disk is gone.
		c.memory.Update(volume.UID, func(p *progress) { p.objectDeleted = false })
	}
	return new(c.observe(volume)), nil
}

// checkTerm returns an error if another process may lead soon. It is called right before each call of the storage
// system: a process that was frozen between its live reads and the call woke up with old answers while another
// process led.
func (c *Controller) checkTerm() error {
	if err := controller.CheckLeading(c.Leading); err != nil {
		return fmt.Errorf("the driver is not called: %w", err)
	}
	return nil
}

// deleteVolume deletes the volume in the storage system, with the prepared call. Success is remembered by the UID
// of the volume: called again, because the write that follows failed, a driver whose handles are names could
// delete a disk that has got the handle since.
func (c *Controller) deleteVolume(ctx context.Context, o observation) (*observation, error) {
	if err := cmp.Or(c.checkTerm(), controller.CheckRead(o.read)); err != nil {
		return nil, err
	}
	start, volume := time.Now(), o.volume
	class := volume.Spec.StorageClassName
	var ignored *backend.Ignored
	c.track(volume, blocker.DriverDeletes, "", false)
	switch err := o.prepared(ctx); {
	case errors.As(err, &ignored):
		c.Waiting.Clear(volume.UID, finalizer.External)
		klog.FromContext(ctx).V(4).Info("Another program deletes the volume", "reason", ignored.Reason)
		c.loop.EnqueueAfter(volume.Name, c.Backoff.Max)
		return nil, nil
	case err != nil && ctx.Err() != nil: // the end of this process interrupted the call
		return nil, err
	case err != nil:
		c.trackFailure(volume, err)
		return nil, c.countFailure(volume, err)
	}
	c.Waiting.Clear(volume.UID, finalizer.External)
	c.memory.Update(volume.UID, func(p *progress) { p.volumeDeleted = true })
	c.Metrics.PersistentVolumeDeleteTotal.WithLabelValues(class).Inc()
	c.Metrics.PersistentVolumeDeleteDurationSeconds.WithLabelValues(class).Observe(since(start))
	klog.FromContext(ctx).V(2).Info("Volume deleted in the storage system")
	return c.withProgress(o, nil)
}

// PrepareDiscard returns the call that deletes a volume in the storage system that no
// PersistentVolume records.
func (c *Controller) PrepareDiscard(ctx context.Context, volume *v1.PersistentVolume,
	handle string) (backend.DeleteCall, error) {
	call, err := c.Deleter.PrepareDiscard(ctx, volume, handle)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := c.checkTerm(); err != nil {
			return err
		}
		return call(ctx)
	}, nil
}

// deleteObject deletes the PersistentVolume with the UID: another volume may have its name by now, whose disk
// would be left behind.
func (c *Controller) deleteObject(ctx context.Context, o observation) (*observation, error) {
	volume := o.volume
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(volume.UID))}
	volumes := c.Client.CoreV1().PersistentVolumes()
	err := controller.CheckRefusal(ctx, volumes.Delete(ctx, volume.Name, options), "volume", volume, volumes.Get)
	if err != nil && !errors.Is(err, controller.ErrGone) {
		return nil, c.countFailure(volume, fmt.Errorf("delete volume object %s: %w", volume.Name, err))
	}
	if !o.state.Protected && o.state.Status != reclaim.StatusPending {
		// No write follows whose answer shows whether the object is being deleted, so it is not taken for deleted:
		// an object that stays could be bound to a claim although its disk is gone.
		c.loop.EnqueueAfter(volume.Name, c.Backoff.Max)
		return nil, nil
	}
	c.memory.Update(volume.UID, func(p *progress) { p.objectDeleted = true })
	return c.withProgress(o, nil)
}
