package claim

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
)

// Config holds the dependencies of the controller.
type Config struct {
	Client   kubernetes.Interface
	Caches   *pvcache.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// Observer derives the state of claims. It is shared with InTree.
	Observer *Observer
	// InTree provisions volumes with in-tree plugins.
	InTree InTree
	// Operations measures how long provisioning takes, for all provisioners.
	Operations *metrics.Operations
	// RequeueAfter is the longest time until a waiting claim is reconciled without an
	// event; 0 is for ever. A failed claim is retried within this time, too.
	RequeueAfter time.Duration
}

// InTree takes over the claims that an in-tree plugin provisions for.
type InTree interface {
	// Enqueue has the volume of the claim provisioned.
	Enqueue(claim string)
}

// Controller binds claims to volumes.
type Controller struct {
	Config
	claims  *controller.Writer
	volumes *pvwriter.Writer
	index   *binding.Index
	loop    *controller.Loop
	// reserved are the volumes in which this process set the claimRef, by the UID of the claim, until the
	// claim names its volume or the cache shows the claimRef.
	reserved *controller.Memory[reservation]
	// started is when this process began to reconcile claims.
	started time.Time
	served  served
}

// reservation is a volume in which this process set the claimRef.
type reservation struct {
	name string
	// unanswered is the resourceVersion of the volume before a write that may have no effect, "" if the
	// API server has confirmed the write.
	unanswered string
}

// New returns the controller.
func New(config Config) *Controller {
	c := &Controller{
		Config:   config,
		claims:   controller.NewWriter(config.Client, config.Versions),
		volumes:  pvwriter.New(config.Client, config.Versions),
		reserved: controller.NewMemory[reservation](),
	}
	backoff := controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute}
	c.loop = controller.NewLoop("claims", backoff.Within(config.RequeueAfter), c.Reconcile)
	c.index = binding.NewIndex(c.loop.Enqueue)
	config.Versions.OnLost(c.writeLost)
	return c
}

// Run reconciles claims with the given number of workers until the context ends.
// Watch has succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop} }

// Enqueue adds the claim to the queue.
func (c *Controller) Enqueue(claim string) {
	c.loop.Enqueue(claim)
}

// Reconcile observes one claim and its volume, and takes step after step until the claim
// is bound or has to wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	o, err := c.observe(ctx, key)
	for steps := new(controller.StepCounter); err == nil && o != nil; {
		decision := binding.DecideClaim(o.state)
		c.measure(o, decision.Reason)
		if decision.Action == binding.Wait {
			c.report(o, decision.Reason)
			if c.RequeueAfter > 0 && !decision.Reason.IsFinal() {
				c.loop.EnqueueAfter(key, c.RequeueAfter)
			}
			return nil
		}
		klog.FromContext(ctx).V(4).Info("Decided on claim", "action", decision.Action, "reason", decision.Reason, "volume",
			o.volumeName(), "state", o.state)
		before := o
		if err = steps.Next(); err == nil {
			o, err = c.execute(ctx, o, decision)
		}
		if err != nil {
			c.reportRefused(ctx, before, decision.Action, err)
		}
	}
	if err != nil {
		c.index.Cancel(key)
	}
	return err
}
