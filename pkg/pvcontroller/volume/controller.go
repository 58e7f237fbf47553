package volume

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
)

// Config is what the reconciler works with.
type Config struct {
	Client kubernetes.Interface
	// ReclaimClient is that of the reclaim loop, so that deletions that fail again and
	// again spend no other budget than its own; nil for Client.
	ReclaimClient kubernetes.Interface

	Caches   *controller.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// Plugins are the in-tree plugins that delete and recycle volumes.
	Plugins *intree.Set
	// Operations measures what they do.
	Operations *metrics.Operations
	// WakeClaim has a claim looked at, by its key.
	WakeClaim func(claim string)
	// LookAgain is the longest time until a volume that waits to be reclaimed is
	// looked at though no event came; 0 for never.
	LookAgain time.Duration
	// Locks are shared with whoever provisions with in-tree plugins: one worker at a time
	// has a volume. They may be nil if nobody does.
	Locks *controller.KeyLocks
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
}

// Controller keeps volumes true to their claims.
type Controller struct {
	Config
	writer *controller.Writer
	memory *controller.Memory[progress]
	// loop has volumes looked at, reclaims those whose claim has let go of them: a
	// plugin that is slow delays no phase. protections adds and removes pv-protection
	// of volumes whose phase is right.
	loop, reclaims, protections *controller.Loop
}

// New returns the reconciler and registers it with the caches.
func New(config Config) (*Controller, error) {
	c := &Controller{
		Config: config,
		writer: controller.NewWriter(config.Client, config.Versions),
		memory: controller.NewMemory[progress](),
	}
	if c.Locks == nil {
		c.Locks = &controller.KeyLocks{}
	}
	backoff := controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute}
	exists := func(name string) bool { return c.Caches.Volume(name) != nil }
	c.loop = controller.NewLoop("volumes", backoff, c.Reconcile).Only(exists)
	c.reclaims = controller.NewLoop("reclaims", backoff, func(ctx context.Context, name string) error { return c.reclaimer().Reclaim(ctx, name) }).
		Only(func(name string) bool { return exists(name) || len(c.Caches.RecyclersOf(name)) > 0 })
	c.protections = controller.NewLoop("pvprotection", backoff, c.Protect).Only(exists)
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for volumes: %w", err)
	}
	return c, nil
}

// reclaimer is the same controller with the client of the reclaim loop.
func (c *Controller) reclaimer() *Controller {
	if c.ReclaimClient == nil {
		return c
	}
	reclaimer := *c
	reclaimer.Client, reclaimer.writer = c.ReclaimClient, controller.NewWriter(c.ReclaimClient, c.Versions)
	return &reclaimer
}

// Run reconciles volumes with so many workers, and as many that protect them, until
// the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() { c.loop.Run(ctx, workers) })
	running.Go(func() { c.reclaims.Run(ctx, reclaimers) })
	running.Go(func() { c.protections.Run(ctx, workers) })
	running.Wait()
}

// reclaimers are how many volumes are reclaimed by in-tree plugins at once.
const reclaimers = 8

// Reconcile brings one volume's marks and phase to where they belong, and hands it
// over to be reclaimed and to be protected.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	if volume == nil || !c.Versions.IsFresh(volume) {
		return nil
	}
	for _, step := range []func(context.Context, *v1.PersistentVolume) (*v1.PersistentVolume, error){
		c.mark, c.setPhase, c.handOver, c.handToProtection,
	} {
		var err error
		if volume, err = step(ctx, volume); err != nil || volume == nil {
			return err
		}
	}
	return nil
}
