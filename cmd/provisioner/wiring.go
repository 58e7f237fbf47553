package main

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/provisioner/audit"
	"github.com/exeunt-io/exeunt/pkg/provisioner/capacity"
	"github.com/exeunt-io/exeunt/pkg/provisioner/cloning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/snapshots"
)

// wiring holds the controllers of the program and what they share. Each file wire_TOPIC.go
// adds the controllers of one topic.
type wiring struct {
	options *options
	clients *program.Clients
	driver  *csi.Driver
	names   provisioning.Names
	factory informers.SharedInformerFactory
	// arrivals tell how claims came into the cache.
	arrivals provisioning.Arrivals
	recorder record.EventRecorder
	counts   librarymetrics.Metrics
	// engine creates and deletes volumes.
	engine         *engine.Engine
	journalMetrics *store.Metrics
	tracked        engine.Tracked
	auditMetrics   *audit.Metrics
	// end ends the process with an error.
	end  func(error)
	host string
	// clones protects claims that are cloned; nil for a driver without cloning.
	clones *cloning.Controller
	// snapshots protects snapshots that volumes are restored from; nil for a driver without
	// snapshots.
	snapshots *snapshots.Controller
	// capacity publishes CSIStorageCapacity objects; nil without --enable-capacity.
	capacity *capacity.Controller
	// topology is the topology of the served node with --node-deployment.
	topology map[string]string
	// work has the Run functions of the controllers, for the time that this process leads.
	work []func(context.Context)
}

// runOnTerm registers the event handlers of a controller and runs it while this process
// leads. The process ends if that fails.
func (w *wiring) runOnTerm(watch func(context.Context) error, run func(context.Context)) {
	w.work = append(w.work, func(ctx context.Context) {
		switch err := watch(ctx); {
		case err == nil:
			run(ctx)
		case ctx.Err() == nil:
			w.end(err)
		}
	})
}

func newWiring(options *options, clients *program.Clients, driver *csi.Driver) (*wiring, error) {
	names := provisioning.Names{Driver: driver.Name()}
	if plugin, replaced := migration.New().Plugin(driver.Name()); replaced {
		names.Migrated, names.PluginOf = []string{plugin}, migration.New().PluginOf
	}
	client, err := clients.Partial("", names.Rules())
	if err != nil {
		return nil, err
	}
	factory, arrivals := engine.NewInformers(client, names)
	return &wiring{options: options, clients: clients, driver: driver, names: names, factory: factory, arrivals: arrivals}, nil
}

// wire creates the controllers and registers their event handlers.
func (w *wiring) wire(ctx context.Context) error {
	if err := w.wireNode(ctx); err != nil {
		return err
	}
	if err := w.wireCapacity(ctx); err != nil {
		return err
	}
	for _, wire := range []func() error{w.wireCloning, w.wireSnapshots, func() error { return w.wireVolumes(ctx) }, func() error { return w.wireAudit(ctx) }} {
		if err := wire(); err != nil {
			return err
		}
	}
	return nil
}
