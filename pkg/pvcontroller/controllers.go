package pvcontroller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/claim"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree/provisioner"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree/reclaimer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/protection"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/volume"
)

// Clients are the clients of the reconcilers. Each may have a rate limit of its own, so
// that volumes whose deletion fails again and again delay no claim.
type Clients struct {
	Binding, Releasing, Reclaiming, Protection kubernetes.Interface
}

// OneClient uses the same client for all reconcilers.
func OneClient(client kubernetes.Interface) Clients {
	return Clients{Binding: client, Releasing: client, Reclaiming: client, Protection: client}
}

// Config holds what the reconcilers share.
type Config struct {
	Clients
	Caches     *pvcache.Caches
	Reporter   *controller.Reporter
	Plugins    *intree.Set
	Operations *metrics.Operations
	// Waiting tracks the deletions that wait, Unprotected the volumes without the in-tree
	// finalizer that they should have; nil for no events and metrics.
	Waiting     *waiting.Tracker
	Unprotected *waiting.Unprotected
	// Dynamic enables dynamic provisioning.
	Dynamic bool
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Leading reports whether this process leads for longer than it takes to stop; nil for
	// always. It is asked right before data is removed.
	Leading func() bool
	// RequeueAfter is the longest time until a waiting object is reconciled without an
	// event; 0 is for ever. The queues of claims and volumes retry failures within this time, too.
	RequeueAfter time.Duration
}

// Controllers are the reconcilers of the pv-controller.
type Controllers struct {
	Claims      *claim.Controller
	Volumes     *volume.Controller
	Protection  *protection.Controller
	Provisioner *provisioner.Controller
	Reclaimer   *reclaimer.Controller
	waiting     *waiting.Tracker
	caches      *pvcache.Caches
	versions    *controller.Versions
}

// New returns the reconcilers and adds their indexes to the caches.
func New(config Config) (*Controllers, error) {
	versions, locks := controller.NewVersions(), &controller.KeyLocks{}
	reclaiming, err := reclaimer.New(reclaimer.Config{
		Client: config.Reclaiming, Caches: config.Caches, Versions: versions, Reporter: config.Reporter,
		Plugins: config.Plugins, Operations: config.Operations, Locks: locks, RequeueAfter: config.RequeueAfter,
		Honor:   config.Honor,
		Waiting: config.Waiting, Unprotected: config.Unprotected, Leading: config.Leading,
	})
	if err != nil {
		return nil, err
	}
	observer := &claim.Observer{Caches: config.Caches, Provisioners: config.Plugins, Scrubbing: reclaiming,
		Dynamic: config.Dynamic}
	provisioning := provisioner.New(provisioner.Config{
		Client: config.Binding, Caches: config.Caches, Versions: versions, Reporter: config.Reporter,
		Claims: observer, Plugins: config.Plugins, Operations: config.Operations, Locks: locks, Honor: config.Honor,
	})
	claims := claim.New(claim.Config{
		Client: config.Binding, Caches: config.Caches, Versions: versions, Reporter: config.Reporter,
		Observer: observer, InTree: provisioning, Operations: config.Operations, RequeueAfter: config.RequeueAfter,
	})
	reclaiming.OnRecyclerEnded(claims.RecyclerEnded)
	volumes := volume.New(volume.Config{
		Client: config.Releasing, Caches: config.Caches, Versions: versions, Reporter: config.Reporter,
		InTree: reclaiming, WakeClaim: claims.Enqueue, Waiting: config.Waiting, RequeueAfter: config.RequeueAfter,
		Honor: config.Honor,
	})
	protected := protection.New(protection.Config{Client: config.Protection, Caches: config.Caches, Versions: versions,
		Reporter: config.Reporter, Waiting: config.Waiting})
	return &Controllers{claims, volumes, protected, provisioning, reclaiming, config.Waiting, config.Caches, versions}, nil
}

// Watch registers the event handlers when the process begins to lead. It returns once they
// have been called for every object in the caches.
func (c *Controllers) Watch(ctx context.Context) error {
	for _, watch := range []func(context.Context) error{c.Claims.Watch, c.Volumes.Watch, c.Protection.Watch,
		c.Reclaimer.Watch} {
		if err := watch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Loops returns the loops of all reconcilers, for a simulation that steps them.
func (c *Controllers) Loops() []*controller.Loop {
	return slices.Concat(c.Claims.Loops(), c.Volumes.Loops(), c.Protection.Loops(), c.Provisioner.Loops(),
		c.Reclaimer.Loops())
}

// Run reconciles until the context ends and every worker has finished its object. Watch
// has succeeded.
func (c *Controllers) Run(ctx context.Context, claimWorkers, volumeWorkers int) {
	c.versions.RequeueUnseen(ctx, c.caches.Volumes, c.Volumes.Enqueue) // claims hear of a lost write
	c.versions.RequeueUnseen(ctx, c.caches.Claims, func(claim string) {
		c.Claims.Enqueue(claim)
		c.Protection.Enqueue(claim)
	})
	var running sync.WaitGroup
	running.Go(func() { c.Claims.Run(ctx, claimWorkers) })
	running.Go(func() { c.Provisioner.Run(ctx, claimWorkers) })
	running.Go(func() { c.Protection.Run(ctx, claimWorkers) })
	running.Go(func() { c.Volumes.Run(ctx, volumeWorkers) })
	running.Go(func() { c.Reclaimer.Run(ctx) })
	running.Go(func() { c.waiting.Run(ctx) })
	running.Wait()
}
