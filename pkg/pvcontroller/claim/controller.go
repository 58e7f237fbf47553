package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
)

// Config is what the reconciler works with.
type Config struct {
	Client   kubernetes.Interface
	Caches   *controller.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// Plugins are the in-tree plugins, and who has taken over which.
	Plugins *intree.Set
	// Operations measures how long provisioning takes, whoever does it.
	Operations *metrics.Operations
	// Dynamic enables dynamic provisioning.
	Dynamic bool
	// Locks are shared with whoever deletes volumes: one worker at a time has a volume
	// of an in-tree plugin. They may be nil if nobody does.
	Locks *controller.KeyLocks
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// LookAgain is the longest time until a claim that waits is looked at though no
	// event came; 0 is for ever.
	LookAgain time.Duration
}

// Controller binds claims to volumes.
type Controller struct {
	Config
	writer *controller.Writer
	index  *binding.Index
	loop   *controller.Loop
	// provisioning is the queue of the in-tree plugins.
	provisioning *controller.Loop
}

// New returns the reconciler and registers it with the caches.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, writer: controller.NewWriter(config.Client, config.Versions)}
	if c.Locks == nil {
		c.Locks = &controller.KeyLocks{}
	}
	exists := func(key string) bool { return c.Caches.Claim(key) != nil }
	c.loop = controller.NewLoop("claims", controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute}, c.Reconcile).Only(exists)
	c.provisioning = controller.NewLoop("provisioning", controller.Backoff{Initial: time.Second, Max: 2 * time.Minute}, c.Provision).Only(exists)
	c.index = binding.NewIndex(c.loop.Enqueue)
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for claims: %w", err)
	}
	return c, nil
}

// Run reconciles claims with so many workers, and as many that provision with
// in-tree plugins, until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() { c.provisioning.Run(ctx, workers) })
	c.loop.Run(ctx, workers)
	running.Wait()
}

// Enqueue has the claim looked at soon.
func (c *Controller) Enqueue(claim string) {
	c.loop.Enqueue(claim)
}

// Reconcile observes one claim and its volume and takes step after step until
// there is nothing left to do but wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	o, err := c.observe(key)
	for steps := new(controller.StepCounter); err == nil && o != nil; {
		decision := binding.DecideClaim(o.state(c))
		c.measure(o.claim, decision.Reason)
		if decision.Action == binding.Wait {
			c.report(o, decision.Reason)
			if c.LookAgain > 0 && !decision.Reason.Settled() {
				c.loop.EnqueueAfter(key, c.LookAgain)
			}
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on claim", "reason", decision.Reason, "volume", o.volumeName())
		if err = steps.Next(); err == nil {
			o, err = c.execute(ctx, o, decision)
		}
	}
	if err != nil {
		c.index.Leave(key)
	}
	return err
}
