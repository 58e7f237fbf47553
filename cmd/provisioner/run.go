package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/pkg/audit"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// Run runs the program until the context ends, the driver changes, or another process takes
// over the journal.
func (o *options) Run(ctx context.Context) error {
	heap.Pace()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure atomic.Pointer[error]
	err := o.work(ctx, func(err error) {
		failure.CompareAndSwap(nil, &err)
		cancel()
	})
	if failed := failure.Load(); failed != nil {
		return *failed
	}
	return err
}

// work runs the program until the context ends; end cancels the context with an error.
func (o *options) work(ctx context.Context, end func(error)) error {
	m := newMeasures()
	watchdog := leaderelection.NewLeaderHealthzAdaptor(unrenewed)
	if err := serve(ctx, o, watchdog, m.calls, m.collectors()); err != nil {
		return err
	}
	clients, err := o.Clients("provisioner")
	if err != nil {
		return err
	}
	driver, err := o.connect(ctx, m.calls, end)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if !clients.WaitForAPIServer(ctx) {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name for the source of events: %w", err)
	}
	recorder, stopEvents := m.tracked.Recorder(ctx, clients.Events, identity.EventSource(driver.Name(), host))
	defer stopEvents()
	names := namesOf(driver.Name())
	client, err := clients.Partial("", names.Rules())
	if err != nil {
		return err
	}
	factory, arrivals := engine.NewInformers(client, names)
	w, err := newWiring(ctx, shared{
		options: o, clients: clients, driver: driver, names: names, factory: factory, arrivals: arrivals,
		recorder: recorder, measures: m, host: host, end: end,
	})
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return w.run(ctx, watchdog)
}

// connect waits for the driver, and returns an error for one that cannot provision volumes.
func (o *options) connect(ctx context.Context, calls *csi.Metrics, end func(error)) (*csi.Driver, error) {
	driver, err := csi.Connect(ctx, csi.Config{
		Address: o.csiAddress, Timeout: o.timeout, Wait: o.driverWait, Topology: o.Gates()[string(topologyGate)],
		Metrics: calls, Migrated: migration.New().IsMigratedDriver, Changed: end,
	})
	if err == nil && !driver.CreatesVolumes() {
		err = fmt.Errorf("driver %s at %s has no capability CREATE_DELETE_VOLUME, so it cannot provision volumes",
			driver.Name(), o.csiAddress)
	}
	return driver, err
}

// measures are the metrics of the program. They are served before the driver answers.
type measures struct {
	calls   *csi.Metrics
	counts  librarymetrics.Metrics
	journal *journalstore.Metrics
	tracked engine.Tracked
	audit   *audit.Metrics
}

func newMeasures() measures {
	return measures{
		calls: csi.NewMetrics(), counts: librarymetrics.New("controller"), journal: journalstore.NewMetrics(),
		tracked: engine.NewTracked(), audit: audit.NewMetrics(),
	}
}

// collectors returns all of them but the calls, for a registry.
func (m measures) collectors() []prometheus.Collector {
	return slices.Concat(engine.Collectors(m.counts), m.journal.Collectors(), m.tracked.Collectors(), m.audit.Collectors())
}

// unlessStopped returns the error, or nil if the program was stopped: stopping fails open
// requests.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// run syncs the caches, on standby too so that a takeover is fast, and runs the controllers
// while this process leads.
func (w *wiring) run(ctx context.Context, watchdog *leaderelection.HealthzAdaptor) error {
	watching, stopWatching := context.WithCancel(ctx)
	w.factory.StartWithContext(watching)
	defer w.factory.Shutdown()
	defer stopWatching()
	klog.FromContext(ctx).Info("Filling caches", "driver", w.driver.Name(), "HonorPVReclaimPolicy", w.options.Honor())
	if !w.clients.WaitForCacheSync(ctx, w.factory) {
		return nil
	}
	election := w.options.election.lease(w.driver.Name())
	election.Connection = w.clients.Connection
	if election.LeaderElect {
		recorder, stopEvents := controller.Recorder(ctx, w.clients.Events, identity.LeaseEventSource(w.driver.Name(), w.host))
		defer stopEvents()
		election.Recorder = recorder
		var err error
		if election.Watched, err = controller.MayWatch(ctx, w.clients.Objects, coordinationv1.Resource("leases"),
			election.ResourceNamespace); err != nil {
			klog.FromContext(ctx).Error(err, "Whether the leader Lease may be watched is unknown; it is read instead")
		}
	}
	return leader.Lead(ctx, election, w.clients.Leases, watchdog, func(ctx context.Context, term controller.Term) error {
		w.engine.Begin(term)
		klog.FromContext(ctx).Info("Working", "driver", w.driver.Name(), "workers", w.options.workers)
		var running sync.WaitGroup
		for _, work := range w.work {
			running.Go(func() { work(ctx) })
		}
		running.Wait()
		return nil
	})
}
