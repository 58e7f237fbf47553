package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/internal/program"
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
	program.PaceCollector()
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
	calls := csi.NewMetrics()
	counts := librarymetrics.New("controller")
	watchdog := leaderelection.NewLeaderHealthzAdaptor(unrenewed)
	journalMetrics, tracked, auditMetrics := journalstore.NewMetrics(), engine.NewTracked(), audit.NewMetrics()
	if err := serve(ctx, o, watchdog, calls, slices.Concat(engine.Collectors(counts), journalMetrics.Collectors(), tracked.Collectors(), auditMetrics.Collectors())); err != nil {
		return err
	}
	clients, err := o.Clients("provisioner")
	if err != nil {
		return err
	}
	driver, err := csi.Connect(ctx, csi.Config{
		Address: o.csiAddress, Timeout: o.timeout, Wait: o.driverWait, Topology: o.Gates()[string(topologyGate)],
		Metrics: calls, Migrated: migration.New().IsMigratedDriver, Changed: end,
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case !driver.CreatesVolumes():
		return fmt.Errorf("driver %s at %s has no capability CREATE_DELETE_VOLUME, so it cannot provision volumes", driver.Name(), o.csiAddress)
	}
	if !clients.WaitForAPIServer(ctx) {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name for the source of events: %w", err)
	}
	recorder, stopEvents := tracked.Recorder(ctx, clients.Events, identity.EventSource(driver.Name(), host))
	defer stopEvents()
	w, err := newWiring(o, clients, driver)
	if err != nil {
		return err
	}
	w.recorder, w.counts, w.host, w.end = recorder, counts, host, end
	w.journalMetrics, w.tracked, w.auditMetrics = journalMetrics, tracked, auditMetrics
	return w.wireAndRun(ctx, watchdog)
}

// wireAndRun creates the controllers and runs them until the context ends.
func (w *wiring) wireAndRun(ctx context.Context, watchdog *leaderelection.HealthzAdaptor) error {
	if err := w.wire(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	return w.run(ctx, watchdog)
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
		if election.Watched, err = controller.MayWatch(ctx, w.clients.Objects, coordinationv1.Resource("leases"), election.ResourceNamespace); err != nil {
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
