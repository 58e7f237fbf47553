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
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// Config is what the reconciler works with.
type Config struct {
	Client kubernetes.Interface
	// Volumes are the provisioner's PersistentVolumes, and all others that may have one
	// of its disks.
	Volumes cache.SharedIndexInformer
	// Attachments are the VolumeAttachments; nil for a driver that does not publish.
	Attachments cache.SharedIndexInformer
	// Deleter deletes the volumes.
	Deleter  backend.Deleter
	Reporter *controller.Reporter
	Metrics  metrics.Metrics
	// Reaches says whether a volume is in reach of this process's driver, where each
	// node has one of its own; nil if every volume is.
	Reaches func(volume *v1.PersistentVolume) bool
	// Backoff bounds the time between two tries of a deletion that fails.
	Backoff controller.Backoff
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Locks are shared with the provisioning loop: one worker at a time per volume name.
	Locks *controller.KeyLocks
	// Settle removes the journal entry that the volume was created with, if there is one;
	// nil without a journal.
	Settle func(ctx context.Context, volume *v1.PersistentVolume) error
}

// Controller reclaims volumes.
type Controller struct {
	Config
	versions *controller.Versions
	writer   *controller.Writer
	memory   *controller.Memory[done]
	loop     *controller.Loop
}

// Names of the indexes.
const (
	byDisk   = "disk"
	byVolume = "volume"
)

// New returns the reconciler and registers it with the caches.
func New(config Config) (*Controller, error) {
	versions := controller.NewVersions()
	c := &Controller{
		Config:   config,
		versions: versions,
		writer:   controller.NewWriter(config.Client, versions),
		memory:   controller.NewMemory[done](),
	}
	c.loop = controller.NewLoop("volumes", config.Backoff, c.Reconcile).
		Only(func(name string) bool { return controller.Lookup[*v1.PersistentVolume](c.Volumes, name) != nil })
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for deletion: %w", err)
	}
	return c, nil
}

// Run reconciles volumes with so many workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Reconcile observes one volume and takes step after step until there is nothing
// left to do but wait.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	defer c.Locks.Lock(name)()
	volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, name)
	if volume == nil || !c.versions.IsFresh(volume) {
		return nil
	}
	o := c.observe(volume)
	for steps := new(controller.StepCounter); ; {
		decision := external.Decide(o.state)
		if decision.Action == external.Wait {
			c.report(volume, decision.Reason)
			c.forgetGone(volume)
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on volume", "reason", decision.Reason)
		if err := steps.Next(); err != nil {
			return err
		}
		next, err := c.execute(ctx, o, decision.Action)
		if err != nil || next == nil {
			c.forgetGone(volume)
			return err
		}
		o = *next
	}
}

// forgetGone drops what was noted of a volume after its deletion was seen.
func (c *Controller) forgetGone(volume *v1.PersistentVolume) {
	if now := controller.Lookup[*v1.PersistentVolume](c.Volumes, volume.Name); now == nil || now.UID != volume.UID {
		c.memory.Forget(volume.UID)
	}
}

func (c *Controller) watch() error {
	err := register(c.Volumes, cache.Indexers{byDisk: c.diskKeys}, controller.OnChange(c.volumeChanged, c.volumeGone))
	if err != nil || c.Attachments == nil {
		return err
	}
	kept := func(_, _ *storagev1.VolumeAttachment) {}
	return register(c.Attachments, cache.Indexers{byVolume: attachedVolume}, controller.OnChange(kept, c.attachmentGone))
}

func register(informer cache.SharedIndexInformer, indexers cache.Indexers, handler cache.ResourceEventHandler) error {
	if err := informer.AddIndexers(indexers); err != nil {
		return fmt.Errorf("add index: %w", err)
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("add handler: %w", err)
	}
	return nil
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	if c.owns(volume) {
		c.loop.Enqueue(volume.Name)
	}
}

// volumeGone wakes the volumes that shared its handle.
func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	c.reportLeak(volume)
	c.versions.Forget(volume.UID)
	c.memory.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
	c.wakeAll(c.sharing(volume))
}

// wakeAll wakes the volumes of these names that are ours.
func (c *Controller) wakeAll(names []string) {
	for _, name := range names {
		if volume := controller.Lookup[*v1.PersistentVolume](c.Volumes, name); volume != nil {
			c.wake(volume)
		}
	}
}

// wake has a volume of ours looked at.
func (c *Controller) wake(volume *v1.PersistentVolume) {
	if c.owns(volume) {
		c.loop.Enqueue(volume.Name)
	}
}

func (c *Controller) attachmentGone(attachment *storagev1.VolumeAttachment) {
	names, _ := attachedVolume(attachment)
	c.wakeAll(names)
}

func attachedVolume(object any) ([]string, error) {
	attachment, ok := object.(*storagev1.VolumeAttachment)
	if !ok || attachment.Spec.Source.PersistentVolumeName == nil {
		return nil, nil
	}
	return []string{*attachment.Spec.Source.PersistentVolumeName}, nil
}

// since is how long ago the start was, in seconds, for the metrics.
func since(start time.Time) float64 {
	return time.Since(start).Seconds()
}
