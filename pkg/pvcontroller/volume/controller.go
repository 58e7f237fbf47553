package volume

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Config holds the dependencies of the controller.
type Config struct {
	Client   kubernetes.Interface
	Caches   *pvcache.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// InTree reclaims volumes of in-tree plugins.
	InTree InTree
	// WakeClaim enqueues the claim with the key.
	WakeClaim func(claim string)
	// Waiting tracks the volumes whose deletion waits; nil for no events and metrics.
	Waiting *waiting.Tracker
	// RequeueAfter is the longest time until a failed volume is retried; 0 is no limit but that of the backoff.
	RequeueAfter time.Duration
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
}

// InTree takes over the volumes that an in-tree plugin reclaims. Package
// intree/reclaimer implements it.
type InTree interface {
	// Enqueue has the volume reclaimed, if its phase says that its claim released it.
	Enqueue(volume *v1.PersistentVolume)
	// Released forgets what was done for an earlier release of the volume: its claim has released it now.
	Released(volume *v1.PersistentVolume)
	// Metadata returns the change of the finalizers and of the annotation that say which
	// component reclaims the volume.
	Metadata(volume *v1.PersistentVolume) pvwriter.Metadata
	// AwaitsReclaim reports whether pv-protection must stay on a volume in the phase until
	// the volume is reclaimed.
	AwaitsReclaim(volume *v1.PersistentVolume, phase v1.PersistentVolumePhase, claim storage.ClaimRelation) bool
	// IsScrubbed reports whether something may be removing data of the volume.
	IsScrubbed(volume *v1.PersistentVolume) bool
	// ScrubbingPod returns the key of the recycler pod that may remove data of the volume, "" if
	// there is none.
	ScrubbingPod(volume *v1.PersistentVolume) string
	// OnRecyclerEnded registers a function that is called with the name of every volume whose
	// recycler pod or plugin may no longer remove data.
	OnRecyclerEnded(wake func(volume string))
	// OnDeleted registers a function that is called with the name of every volume whose
	// data a plugin deleted.
	OnDeleted(wake func(volume string))
}

// Controller sets the phases of volumes, and adds and removes pv-protection.
type Controller struct {
	Config
	volumes *pvwriter.Writer
	// loop sets metadata and phase. protections adds and removes pv-protection of
	// volumes that need neither.
	loop, protections *controller.Loop
}

// New returns the controller.
func New(config Config) *Controller {
	c := &Controller{Config: config, volumes: pvwriter.New(config.Client, config.Versions)}
	backoff := controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute}.Within(config.RequeueAfter)
	c.loop = controller.NewLoop("volumes", backoff, c.Reconcile)
	c.protections = controller.NewLoop("pvprotection", backoff, c.Protect)
	c.InTree.OnDeleted(c.Enqueue) // pv-protection may have waited for the deletion
	c.InTree.OnRecyclerEnded(c.Enqueue)
	return c
}

// Run reconciles volumes until the context ends. Each of the two loops has the given
// number of workers. Watch has succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() { c.loop.Run(ctx, workers) })
	running.Go(func() { c.protections.Run(ctx, workers) })
	running.Wait()
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop, c.protections} }

// Enqueue adds the volume to the queue.
func (c *Controller) Enqueue(volume string) {
	c.loop.Enqueue(volume)
}

// Reconcile sets metadata and phase of one volume, and then enqueues the volume where
// it is reclaimed and protected.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	switch {
	case volume == nil:
		return nil
	case !c.Versions.IsFresh(volume):
		return c.Versions.AwaitVolume(ctx, c.Client, volume)
	}
	volume, err := c.setMetadata(ctx, volume)
	if err != nil {
		return err
	}
	if volume, err = c.setPhase(ctx, volume); err != nil {
		return err
	}
	c.InTree.Enqueue(volume)
	c.enqueueProtection(volume)
	return nil
}

// setMetadata writes until the metadata is right: no event may follow a write that another program undoes.
func (c *Controller) setMetadata(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	for steps := new(controller.StepCounter); ; {
		metadata := c.InTree.Metadata(volume)
		if metadata.IsEmpty() {
			return volume, nil
		}
		if err := steps.Next(); err != nil {
			return nil, c.Reporter.ReportRefusal(volume, writesMetadata, err)
		}
		now, err := c.volumes.SetMetadata(ctx, volume, metadata)
		if err != nil {
			return nil, c.Reporter.ReportRefusal(volume, writesMetadata, err)
		}
		volume = now
	}
}

// Watch registers the event handlers, and returns once every volume is enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.Caches.Volumes, Handler: controller.OnChange(c.volumeChanged, c.volumeGone)},
		controller.EventHandler{Informer: c.Caches.Claims,
			Handler: controller.OnReplay(controller.Ignore[*v1.PersistentVolumeClaim],
				controller.OnChange(c.claimChanged, c.claimGone))},
	)
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.loop.Enqueue(volume.Name)
}

func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	c.Versions.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
	c.Waiting.Forget(volume.UID)
}

// claimChanged enqueues the volumes that refer to a new claim, or to a claim that names
// another volume than before.
func (c *Controller) claimChanged(old, claim *v1.PersistentVolumeClaim) {
	if old == nil || old.UID != claim.UID || old.Spec.VolumeName != claim.Spec.VolumeName {
		c.claimGone(claim)
	}
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	for _, volume := range c.Caches.VolumesOf(controller.Key(claim)) {
		c.loop.Enqueue(volume.Name)
	}
	if claim.Spec.VolumeName != "" {
		c.loop.Enqueue(claim.Spec.VolumeName)
	}
}
