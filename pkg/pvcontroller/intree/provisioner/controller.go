package provisioner

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
)

// Claims decides whether a claim is served by an in-tree plugin. Package claim
// implements it.
type Claims interface {
	// AwaitsPlugin reports whether the next step for the claim, as read from the API
	// server, is to provision a volume with an in-tree plugin.
	AwaitsPlugin(claim *v1.PersistentVolumeClaim) bool
}

// Config holds the dependencies of the controller.
type Config struct {
	Client   kubernetes.Interface
	Caches   *pvcache.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	Claims   Claims
	Plugins  *intree.Set
	// Operations measures calls of plugins.
	Operations *metrics.Operations
	// Locks are shared with the reclaimer: one worker at a time works on a volume.
	Locks *controller.KeyLocks
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
}

// Controller provisions volumes with in-tree plugins.
type Controller struct {
	Config
	claims  *controller.Writer
	volumes *pvwriter.Writer
	loop    *controller.Loop
}

// New returns the controller.
func New(config Config) *Controller {
	c := &Controller{
		Config:  config,
		claims:  controller.NewWriter(config.Client, config.Versions).Unpaused(), // the scheduler selects a node again
		volumes: pvwriter.New(config.Client, config.Versions),
	}
	c.loop = controller.NewLoop("provisioning", controller.Backoff{Initial: time.Second, Max: 2 * time.Minute},
		c.Reconcile)
	return c
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop} }

// Run provisions with the given number of workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Enqueue adds the claim to the queue.
func (c *Controller) Enqueue(claim string) {
	c.loop.Enqueue(claim)
}

// Reconcile provisions the volume of one claim. It reads the claim from the API server:
// the cache may not know yet that the claim is gone or bound.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	cached := c.Caches.Claim(key)
	if cached == nil {
		return nil
	}
	claim, err := controller.ReadLive(ctx, "claim", cached.Name,
		c.Client.CoreV1().PersistentVolumeClaims(cached.Namespace).Get)
	switch {
	case err != nil:
		return err
	case (claim == nil || claim.UID != cached.UID) && c.Caches.HasClaim(cached): // no event may follow
		return controller.ErrStaleCache
	case claim == nil || claim.UID != cached.UID || !c.Claims.AwaitsPlugin(claim):
		return nil
	}
	return c.provision(ctx, claim)
}
