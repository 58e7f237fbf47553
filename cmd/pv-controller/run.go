package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/claim"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// eventSource is the component in the events of upstream's loops.
const eventSource = "persistentvolume-controller"

// Run runs until the context ends. Caches sync before the lease is acquired, so that a
// replica on standby can lead at once.
func (o *options) Run(ctx context.Context) error {
	heap.Pace()
	clients, err := o.Clients("pv-controller")
	if err != nil || !clients.WaitForAPIServer(ctx) {
		return err
	}
	factory, caches, err := newCaches(clients)
	if err == nil {
		err = o.publishConfig()
	}
	if err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(expiryTolerance)
	stopServing, err := o.serving.Serve(checks(caches, watchdog))
	if err != nil {
		return err
	}
	defer stopServing()
	sink := waiting.NewSink(clients.Events, clock.RealClock{})
	recorder, stopEvents := controller.RecorderTo(ctx, sink, eventSource)
	defer stopEvents()
	controllers, err := newControllers(o, clients, caches, controller.NewReporter(recorder))
	if err != nil {
		return err
	}
	controllers.waiting.SendTo(recorder, sink.Refuses)
	watching, stopWatching := context.WithCancel(ctx)
	factory.StartWithContext(watching)
	defer factory.Shutdown()
	defer stopWatching()
	klog.FromContext(ctx).Info("Filling caches", "HonorPVReclaimPolicy", o.Honor())
	if !clients.WaitForCacheSync(ctx, factory) {
		return nil
	}
	election := leader.Election{LeaderElectionConfiguration: o.leader, Watched: true, Recorder: recorder,
		Connection: clients.Connection}
	return leader.Lead(ctx, election, clients.Leases, watchdog, func(ctx context.Context, term controller.Term) error {
		controllers.term = term
		return controllers.lead(ctx, o, caches)
	})
}

// newCaches returns the informers, which decode only what the caches keep.
func newCaches(clients *program.Clients) (informers.SharedInformerFactory, *pvcache.Caches, error) {
	partial, err := clients.Partial("", pvcache.Rules())
	if err != nil {
		return nil, nil, err
	}
	factory := informers.NewSharedInformerFactory(partial, 0)
	caches, err := pvcache.New(factory)
	return factory, caches, err
}

// lead registers event handlers and metrics, and runs the controllers.
func (c *controllers) lead(ctx context.Context, o *options, caches *pvcache.Caches) error {
	if err := c.watch(ctx, caches); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Working", "claimWorkers", o.claimWorkers, "volumeWorkers", o.volumeWorkers)
	c.Run(ctx, o.claimWorkers, o.volumeWorkers)
	return nil
}

// expiryTolerance is how long a leader may go on after its lease has expired until its
// health check fails.
const expiryTolerance = 20 * time.Second

// checks returns the health checks: a leader holds its lease, and all caches have synced.
func checks(caches *pvcache.Caches, watchdog *leaderelection.HealthzAdaptor) serving.Checks {
	return serving.Checks{Live: []healthz.HealthChecker{watchdog},
		Ready: serving.InformerSync(map[string]cache.InformerSynced{
			"claims":  caches.Claims.HasSynced,
			"volumes": caches.Volumes.HasSynced,
			"classes": caches.Classes.HasSynced,
			"pods":    caches.Pods.HasSynced,
		})}
}

// watch counts and enqueues the objects of the caches.
func (c *controllers) watch(ctx context.Context, caches *pvcache.Caches) error {
	counts := metrics.NewCollector()
	if err := counts.Watch(ctx, caches.Volumes, caches.Claims); err != nil {
		return err
	}
	if err := c.registerMetrics(counts); err != nil {
		return err
	}
	return c.Watch(ctx)
}

// registerMetrics registers the counts of volumes and claims. Only the leader counts, so
// that a sum over all replicas is right.
func (c *controllers) registerMetrics(counts *metrics.Collector) error {
	own := legacyregistry.Registerer()
	err := errors.Join(legacyregistry.CustomRegister(counts), claim.RegisterMetrics(legacyregistry.Register),
		c.operations.Register(legacyregistry.Register),
		own.Register(c.waiting), own.Register(c.unprotected))
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// controllers are the reconcilers, and the metrics about their work.
type controllers struct {
	*pvcontroller.Controllers
	operations  *metrics.Operations
	waiting     *waiting.Tracker
	unprotected *waiting.Unprotected
	// term is set before the first reconciler runs.
	term controller.Term
}

// leading reports whether this process leads, see [controller.Term].
func (c *controllers) leading() bool { return c.term.Leading() }

// blockers are the reasons for which pv-controller lets deletions wait.
var blockers = []blocker.Reason{
	blocker.ClaimExists, blocker.PodUsesClaim, blocker.DriverDeletes, blocker.DriverRefuses, blocker.DriverMissing,
	blocker.HandleShared, blocker.TooLateToProtect,
}

func newControllers(options *options, clients *program.Clients, caches *pvcache.Caches,
	reporter *controller.Reporter) (*controllers, error) {
	loops, err := newLoopClients(clients)
	if err != nil {
		return nil, err
	}
	c := &controllers{operations: metrics.NewOperations(), waiting: waiting.New(clock.RealClock{}, blockers...),
		unprotected: waiting.NewUnprotected()}
	c.Controllers, err = pvcontroller.New(pvcontroller.Config{
		Clients: loops, Caches: caches, Reporter: reporter, Plugins: options.inTree,
		Operations: c.operations, Waiting: c.waiting, Unprotected: c.unprotected,
		Dynamic: options.dynamic, Honor: options.Honor(), RequeueAfter: options.resyncPeriod,
		Leading: c.leading,
	})
	return c, err
}

// newLoopClients returns the clients of the reconcilers. Each has its own rate limit, if a
// limit is set.
func newLoopClients(clients *program.Clients) (pvcontroller.Clients, error) {
	binding, bindingErr := clients.For("binding")
	releasing, releasingErr := clients.For("releasing")
	reclaiming, reclaimingErr := clients.For("reclaiming")
	protection, protectionErr := clients.Partial("protection", pvcache.PodRules()) // it lists the pods of a namespace
	return pvcontroller.Clients{Binding: binding, Releasing: releasing, Reclaiming: reclaiming, Protection: protection},
		errors.Join(bindingErr, releasingErr, reclaimingErr, protectionErr)
}
