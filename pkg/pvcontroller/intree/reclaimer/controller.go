package reclaimer

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Workers is the number of volumes that plugins reclaim at the same time.
const Workers = 8

// Config holds the dependencies of the controller.
type Config struct {
	Client   kubernetes.Interface
	Caches   *pvcache.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	Plugins  *intree.Set
	// Operations measures deletions and recycling.
	Operations *metrics.Operations
	// Waiting tracks the volumes whose deletion waits, Unprotected the volumes without the
	// in-tree finalizer that they should have; nil for no events and metrics.
	Waiting     *waiting.Tracker
	Unprotected *waiting.Unprotected
	// Locks are shared with the in-tree provisioner: one worker at a time works on a volume.
	Locks *controller.KeyLocks
	// RequeueAfter is the longest time until a waiting volume is reconciled without an
	// event; 0 is for ever.
	RequeueAfter time.Duration
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Leading reports whether this process leads for longer than it takes to stop; nil for
	// always.
	Leading func() bool
}

// Controller reclaims volumes of in-tree plugins.
type Controller struct {
	Config
	volumes *pvwriter.Writer
	memory  *controller.Memory[progress]
	loop    *controller.Loop
	// deleted are called with the name of every volume that a plugin deleted.
	deleted []func(volume string)
	// recyclerEnded are called with the name of every volume whose recycler pod ended.
	recyclerEnded []func(volume string)
}

// New returns the controller and adds its indexes to the caches.
func New(config Config) (*Controller, error) {
	c := &Controller{
		Config:  config,
		volumes: pvwriter.New(config.Client, config.Versions),
		memory:  controller.NewMemory[progress](),
	}
	c.loop = controller.NewLoop("reclaims", controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute}, c.Reconcile)
	if err := c.addIndexes(); err != nil {
		return nil, fmt.Errorf("add indexes of volumes: %w", err)
	}
	return c, nil
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop} }

// Run reclaims volumes until the context ends. Watch has succeeded.
func (c *Controller) Run(ctx context.Context) {
	c.loop.Run(ctx, Workers)
}

// Enqueue has the volume reclaimed if its phase is Released or Failed, and its recycler pod ended
// if the volume was given away meanwhile. Released volumes inside the volume need not wait for it
// any more.
func (c *Controller) Enqueue(volume *v1.PersistentVolume) {
	released := isReleased(volume)
	if c.isWorkedOn(volume) {
		c.loop.Enqueue(volume.Name)
	}
	if !released {
		c.Waiting.Clear(volume.UID, finalizer.InTree)
		return
	}
	c.enqueueInside(volume)
}

// OnDeleted registers a function that is called with the name of every volume whose data
// a plugin deleted. All functions are registered before Run.
func (c *Controller) OnDeleted(wake func(volume string)) {
	c.deleted = append(c.deleted, wake)
}

// OnRecyclerEnded registers a function that is called with the name of every volume whose
// recycler pod finished or is gone. All functions are registered before Watch.
func (c *Controller) OnRecyclerEnded(wake func(volume string)) {
	c.recyclerEnded = append(c.recyclerEnded, wake)
}

// Reconcile takes step after step until one volume is reclaimed or has to wait.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	if volume == nil {
		return c.deleteRecyclersOf(ctx, name)
	}
	defer c.forgetDeleted(volume)
	if c.memory.Get(volume.UID).unchecked {
		gone, err := c.deleteGivenAway(ctx, volume)
		if err != nil {
			return err
		}
		if c.wakeScrubbed(name); gone {
			return nil
		}
	}
	if !c.Versions.IsFresh(volume) {
		return c.Versions.AwaitVolume(ctx, c.Client, volume)
	}
	c.measureDeletion(volume)
	if err := c.endUnseen(ctx, volume); err != nil {
		return err
	}
	return c.reclaim(ctx, volume)
}

// Released forgets that a plugin has deleted the data: a restored etcd may have brought the volume and its claim
// back, and the claim releases the volume a second time.
func (c *Controller) Released(volume *v1.PersistentVolume) {
	if done := c.memory.Get(volume.UID); done.deleted == "" || done.deleting || done.unchecked {
		return
	}
	c.memory.Update(volume.UID, func(p *progress) { p.deleted = "" })
}

// forgetDeleted drops what was noted after the deletion event of the volume.
func (c *Controller) forgetDeleted(volume *v1.PersistentVolume) {
	if now := c.Caches.Volume(volume.Name); now == nil || now.UID != volume.UID {
		c.memory.Forget(volume.UID)
	}
}

func (c *Controller) reclaim(ctx context.Context, volume *v1.PersistentVolume) error {
	steps := new(controller.StepCounter)
	for o := c.observe(volume); ; {
		decision := plugin.Decide(o.state)
		switch wait := c.remainingBackoff(volume.UID); {
		case decision.Action == plugin.Wait:
			c.wait(ctx, o, decision.Reason)
			return nil
		case decision.Action.StartsAttempt() && wait > 0:
			c.loop.EnqueueAfter(volume.Name, wait)
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on the reclaim of a volume", "action", decision.Action, "reason", decision.Reason, "state", o.state)
		if err := steps.Next(); err != nil {
			return err
		}
		next, err := c.execute(ctx, o, decision)
		if err != nil || next == nil {
			return err
		}
		o = *next
	}
}

// wait reports why the volume waits, and enqueues the volume again after RequeueAfter where
// another object must change first.
func (c *Controller) wait(ctx context.Context, o observation, reason plugin.Reason) {
	c.reportWait(o, reason)
	c.trackWait(o, reason)
	if reason == plugin.RecyclerPodUnfinished && o.state.Recycler == plugin.RecyclerRunning {
		c.repeatPodEvents(ctx, o)
	}
	if reason.NeedsRequeue() {
		c.lookAgain(o.volume)
	}
}

// isReleased reports whether the phase says that the claim released the volume. A Failed
// volume was Released before.
func isReleased(volume *v1.PersistentVolume) bool {
	return storage.PhaseOf(volume.Status.Phase).Released()
}
