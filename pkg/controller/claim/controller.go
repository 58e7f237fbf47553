package claim

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Config is what the reconciler works with.
type Config struct {
	Client   kubernetes.Interface
	Caches   *controller.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// Provisioner returns the name under which a class is provisioned outside of
	// this program, and false if nobody can provision for it.
	Provisioner func(class string) (name string, ok bool)
	// Dynamic enables dynamic provisioning.
	Dynamic bool
}

// Controller binds claims to volumes.
type Controller struct {
	Config
	writer *controller.Writer
	index  *binding.Index
	// holders are the provisioners that hold claims themselves.
	holders *binding.Holders
	loop    *controller.Loop
}

// New returns the reconciler and registers it with the caches.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, writer: controller.NewWriter(config.Client, config.Versions), holders: binding.NewHolders()}
	c.loop = controller.NewLoop("claims", controller.Backoff{First: 20 * time.Millisecond, Most: time.Minute}, c.Reconcile)
	c.index = binding.NewIndex(c.loop.Enqueue)
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for claims: %w", err)
	}
	return c, nil
}

// Run reconciles claims with so many workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Enqueue has the claim looked at soon.
func (c *Controller) Enqueue(claim string) {
	c.loop.Enqueue(claim)
}

// Reconcile observes one claim and its volume and takes step after step until
// there is nothing left to do but wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	o, err := c.observe(key)
	for err == nil && o != nil {
		decision := binding.DecideClaim(o.state(c))
		if decision.Action == binding.Wait {
			c.report(o, decision.Reason)
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on claim", "reason", decision.Reason, "volume", o.volumeName())
		o, err = c.execute(ctx, o, decision)
	}
	if err != nil {
		c.index.Leave(key)
	}
	return err
}
