package reclaimer

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
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
	c.loop = controller.NewLoop("reclaims", controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute},
		c.Reconcile)
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
		klog.FromContext(ctx).V(4).Info("Decided on the reclaim of a volume", "action", decision.Action, "reason",
			decision.Reason, "state", o.state)
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

// trackWait tracks a volume whose data is also the data of another volume. Recycling is no
// deletion.
func (c *Controller) trackWait(o observation, reason plugin.Reason) {
	if reason == plugin.HandleShared && policyOf(o.volume) == storage.PolicyDelete {
		c.trackDeletion(o.volume, blocker.HandleShared, true)
		return
	}
	c.Waiting.Clear(o.volume.UID, finalizer.InTree)
}

// trackFailed tracks a volume that no plugin here can delete.
func (c *Controller) trackFailed(volume *v1.PersistentVolume, reason plugin.Reason) {
	if reason == plugin.NoPlugin && policyOf(volume) == storage.PolicyDelete {
		c.trackDeletion(volume, blocker.DriverMissing, true)
	}
}

// trackDeletion has users told that the deletion of the volume waits. Reported: a more exact
// event was just sent.
func (c *Controller) trackDeletion(volume *v1.PersistentVolume, reason blocker.Reason, reported bool) {
	c.Waiting.Wait(waiting.Deletion{
		Object: waiting.VolumeReference(volume), Finalizer: finalizer.InTree,
		Since: waiting.VolumeSince(volume), Reason: reason, Reported: reported,
		Blocker: func() (blocker.Blocker, bool) { return c.pluginDeletes(volume, reason), true },
		Exists:  func() bool { return c.Caches.HasVolume(volume) },
	})
}

// pluginDeletes returns the plugin that the deletion of the volume waits for.
func (c *Controller) pluginDeletes(volume *v1.PersistentVolume, reason blocker.Reason) blocker.Blocker {
	verdict := blocker.Stuck
	if reason == blocker.DriverDeletes {
		verdict = blocker.Waiting
	}
	return blocker.Blocker{
		Object:    blocker.Object{Kind: "PersistentVolume", Name: volume.Name, UID: string(volume.UID)},
		Finalizer: string(finalizer.InTree), Reason: reason, Verdict: verdict,
		Holder: "the in-tree plugin " + c.deleterName(volume), Next: "kubectl exeunt why pv/" + volume.Name,
	}
}

// progress is what the controller remembers about a volume that still exists.
type progress struct {
	// deleted names the volume and the claim whose data the plugin deleted, in the form
	// of [plugin.DataID].
	deleted string
	// deleting: the plugin is deleting the data now.
	deleting bool
	// unchecked: the data is deleted, and it is not known yet whether the volume was given away meanwhile.
	unchecked bool
	// created is the last creation of a recycler pod, until an event shows the pod.
	created creation
	// reported are the events of the last recycler pod that were repeated on the volume.
	reported map[types.UID]bool
	// failures is the number since the last success; no attempt starts before until.
	failures int
	until    time.Time
}

// creation is a request to create a recycler pod. Its zero value is none.
type creation struct {
	// at is the time of the request.
	at time.Time
	// pod is the UID of the created pod, "" while the outcome is unknown.
	pod types.UID
}

// The shortest and the longest time between two attempts for one volume.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// backOff notes a failure. The next attempt waits, however often the volume is enqueued.
func (c *Controller) backOff(uid types.UID) {
	c.memory.Update(uid, func(p *progress) {
		wait := lastRetry
		if p.failures < 10 { // more would overflow the shift
			wait = min(lastRetry, firstRetry<<p.failures)
		}
		p.failures++
		p.until = time.Now().Add(wait)
	})
}

// remainingBackoff returns how long the next attempt still waits.
func (c *Controller) remainingBackoff(uid types.UID) time.Duration {
	return time.Until(c.memory.Get(uid).until)
}
