package deletion

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Config is the configuration of the controller.
type Config struct {
	Client kubernetes.Interface
	// Volumes are the PersistentVolumes that the provisioner reclaims, and all others that
	// may have one of their disks.
	Volumes cache.SharedIndexInformer
	// Attachments are the VolumeAttachments; nil for a driver that does not publish.
	Attachments cache.SharedIndexInformer
	// Deleter deletes the volumes.
	Deleter  backend.Deleter
	Reporter *controller.Reporter
	Metrics  metrics.Metrics
	// Reaches reports whether the driver of this process reaches a volume, with node
	// deployment; nil if the driver reaches every volume.
	Reaches func(volume *v1.PersistentVolume) bool
	// Backoff is the time between two attempts of a deletion that fails.
	Backoff controller.Backoff
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Waiting tracks the volumes whose deletion waits, Unprotected the volumes without the
	// finalizer that they should have; nil for no events and metrics.
	Waiting     *waiting.Tracker
	Unprotected *waiting.Unprotected
	// Leading reports whether this process leads for longer than it takes to stop; nil for
	// always.
	Leading func() bool
	// Locks are shared with the provisioning loop: one worker at a time per volume name.
	Locks *controller.KeyLocks
	// RemoveEntry removes the journal entry that the volume was created with, and reports
	// whether there was one; nil without a journal.
	RemoveEntry func(ctx context.Context, volume *v1.PersistentVolume) (removed bool, err error)
}

// Controller reclaims volumes.
type Controller struct {
	Config
	versions *controller.Versions
	writer   *controller.Writer
	memory   *controller.Memory[progress]
	loop     *controller.Loop
}

// Names of the indexes.
const (
	byDisk      = "disk"
	byEnclosing = "enclosing-disk"
	byVolume    = "volume"
)

// New returns the controller and adds its indexes to the caches.
func New(config Config) (*Controller, error) {
	versions := controller.NewVersions()
	c := &Controller{
		Config:   config,
		versions: versions,
		writer:   controller.NewWriter(config.Client, versions),
		memory:   controller.NewMemory[progress](),
	}
	c.loop = controller.NewLoop("volumes", config.Backoff, c.Reconcile)
	if err := c.addIndexes(); err != nil {
		return nil, fmt.Errorf("add indexes for deletion: %w", err)
	}
	return c, nil
}

// Watch registers the event handlers, and returns once every volume of the driver is
// enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	handlers := []controller.EventHandler{{Informer: c.Volumes,
		Handler: controller.OnChange(c.onVolume, c.onVolumeDeleted)}}
	if c.Attachments != nil {
		handlers = append(handlers, controller.EventHandler{
			Informer: c.Attachments, Handler: controller.OnChange(func(_, _ *storagev1.VolumeAttachment) {},
				c.onAttachmentDeleted),
		})
	}
	return controller.RegisterHandlers(ctx, handlers...)
}

// Run reconciles volumes with the given number of workers until the context ends. Watch has
// succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.versions.RequeueUnseen(ctx, c.Volumes, c.loop.Enqueue)
	c.loop.Run(ctx, workers)
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop} }

// Reconcile observes one volume and executes one decision after another, until the
// decision is to wait.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	defer c.Locks.Lock(name)()
	volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, name)
	switch {
	case volume == nil:
		return nil
	case !c.versions.IsFresh(volume):
		return c.versions.AwaitVolume(ctx, c.Client, volume)
	case c.awaitsEvent(volume):
		return controller.ErrStaleCache
	}
	o := c.observe(volume)
	for steps := new(controller.StepCounter); ; {
		decision := external.Decide(o.state)
		if decision.Action == external.Wait {
			c.report(volume, decision.Reason)
			c.trackWait(o, decision.Reason)
			c.requeueClaimed(o, decision.Reason)
			c.forgetDeleted(volume)
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on volume", "action", decision.Action, "reason", decision.Reason, "state",
			o.state)
		if err := steps.Next(); err != nil {
			return err
		}
		next, err := c.execute(ctx, o, decision.Action)
		if err != nil || next == nil {
			c.forgetDeleted(volume)
			return err
		}
		o = *next
	}
}

// requeueClaimed has a released volume reconciled again whose claim still exists. The phase was
// written too early, so that no event of the volume follows the deletion of the claim, and not
// every claim is watched.
func (c *Controller) requeueClaimed(o observation, reason external.Reason) {
	if reason == external.StillClaimed && o.state.Phase.Released() {
		c.loop.EnqueueAfter(o.volume.Name, c.Backoff.Max)
	}
}

// forgetDeleted drops the progress of a volume that the cache no longer has: the progress
// may have been noted after the deletion event.
func (c *Controller) forgetDeleted(volume *v1.PersistentVolume) {
	if !c.exists(volume) {
		c.memory.Forget(volume.UID)
	}
}

// exists reports whether the cache has the volume.
func (c *Controller) exists(volume *v1.PersistentVolume) bool {
	now := controller.Lookup[*v1.PersistentVolume](c.Volumes, volume.Name)
	return now != nil && now.UID == volume.UID
}

func (c *Controller) addIndexes() error {
	err := c.Volumes.AddIndexers(cache.Indexers{byDisk: controller.BucketIndex(c.diskKeys),
		byEnclosing: controller.BucketIndex(c.enclosingKeys)})
	if err != nil || c.Attachments == nil {
		return err
	}
	return c.Attachments.AddIndexers(cache.Indexers{byVolume: attachedVolume})
}

// onVolume enqueues a volume that the driver reclaims.
func (c *Controller) onVolume(_, volume *v1.PersistentVolume) {
	owned := c.owns(volume)
	c.Unprotected.Set(volume.UID, external.IsUnprotected(external.State{
		Owned:     owned,
		Policy:    storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy),
		Phase:     storage.PhaseOf(volume.Status.Phase),
		Protected: finalizer.Has(volume.Finalizers, finalizer.External),
	}))
	if owned {
		c.loop.Enqueue(volume.Name)
	}
}

// onVolumeDeleted enqueues the volumes that shared the disk of the deleted one, or had it inside theirs.
func (c *Controller) onVolumeDeleted(volume *v1.PersistentVolume) {
	c.reportLeak(volume)
	c.versions.Forget(volume.UID)
	c.memory.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
	c.Waiting.Forget(volume.UID)
	c.Unprotected.Set(volume.UID, false)
	c.enqueue(append(c.sharing(volume), c.enclosing(volume)...))
}

// enqueue enqueues the named volumes, except volumes of other provisioners.
func (c *Controller) enqueue(names []string) {
	for _, name := range names {
		if volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, name); volume != nil {
			c.onVolume(nil, volume)
		}
	}
}

func (c *Controller) onAttachmentDeleted(attachment *storagev1.VolumeAttachment) {
	names, _ := attachedVolume(attachment)
	c.enqueue(names)
}

// attachedVolume returns the name of the attached volume.
func attachedVolume(object any) ([]string, error) {
	attachment, ok := object.(*storagev1.VolumeAttachment)
	if !ok || attachment.Spec.Source.PersistentVolumeName == nil {
		return nil, nil
	}
	return []string{*attachment.Spec.Source.PersistentVolumeName}, nil
}

// since returns the seconds since the start, for the metrics.
func since(start time.Time) float64 {
	return time.Since(start).Seconds()
}

// progress has the facts about a volume until the PersistentVolume is deleted.
type progress struct {
	// volumeDeleted: DeleteVolume succeeded.
	volumeDeleted bool
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
	// goneReads is how often a reconcile may still meet the PersistentVolume in the cache
	// after its last finalizer was removed: its deletion event is on the way.
	goneReads int
}

// maxGoneReads bounds the wait for a deletion event, together with the backoff of stale keys:
// 620 ms, which a busy API server takes. A volume that is still in the cache then may have come back
// from a backup.
const maxGoneReads = 5

// awaitsEvent reports whether the PersistentVolume is gone and its deletion event has not
// arrived. It returns false after a few calls.
func (c *Controller) awaitsEvent(volume *v1.PersistentVolume) bool {
	if c.memory.Get(volume.UID).goneReads <= 0 {
		return false
	}
	c.memory.Update(volume.UID, func(p *progress) { p.goneReads-- })
	c.forgetDeleted(volume)
	return true
}

// noteGone has the next reconciles wait for the deletion event of the PersistentVolume.
func (c *Controller) noteGone(volume *v1.PersistentVolume) {
	c.memory.Update(volume.UID, func(p *progress) { p.goneReads = maxGoneReads })
}
