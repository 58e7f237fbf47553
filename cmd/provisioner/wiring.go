package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/audit"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/provisioner/capacity"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/provisioner/engine"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/sources"
)

// shared is what all controllers of the program use. It is complete before the first controller is created.
type shared struct {
	options *options
	clients *program.Clients
	driver  *csi.Driver
	names   provisioning.Names
	factory informers.SharedInformerFactory
	// arrivals tell how claims came into the cache.
	arrivals provisioning.Arrivals
	recorder record.EventRecorder
	measures measures
	host     string
	// end ends the process with an error.
	end func(error)
}

// wiring holds the controllers of the program. Each file wire_TOPIC.go adds the controllers of one topic.
type wiring struct {
	shared
	// topology is the topology of the served node with --node-deployment.
	topology map[string]string
	// capacity publishes CSIStorageCapacity objects; nil without --enable-capacity.
	capacity *capacity.Controller
	// clones protects claims that are cloned; nil for a driver without cloning.
	clones *sources.Clones
	// snapshots protects snapshots that volumes are restored from; nil for a driver without
	// snapshots.
	snapshots *sources.Snapshots
	// engine creates and deletes volumes.
	engine *engine.Engine
	// work has the Run functions of the controllers, for the time that this process leads.
	work []func(context.Context)
}

// newWiring creates the controllers, in the order in which they use each other.
func newWiring(ctx context.Context, s shared) (*wiring, error) {
	w := &wiring{shared: s}
	for _, wire := range []func(context.Context) error{
		w.wireNode, w.wireCapacity, w.wireCloning, w.wireSnapshots, w.wireVolumes, w.wireAudit,
	} {
		if err := wire(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
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

// namesOf returns the name of the driver, and that of the in-tree plugin that it replaced.
func namesOf(driver string) provisioning.Names {
	names := provisioning.Names{Driver: driver}
	if plugin, replaced := migration.New().Plugin(driver); replaced {
		names.Migrated, names.PluginOf = []string{plugin}, migration.New().PluginOf
	}
	return names
}

// nodes returns the caches of Nodes, with labels only, and of CSINodes. With
// --node-deployment nothing is watched.
func (w *wiring) nodes() (cached, registered cache.SharedIndexInformer, err error) {
	if w.options.node.enabled {
		return engine.ServedNode(w.driver.Name(), w.options.node.name(), w.topology)
	}
	cached, registered = w.factory.Core().V1().Nodes().Informer(), w.factory.Storage().V1().CSINodes().Informer()
	if err := cached.SetTransform(controller.TrimNode); err != nil {
		return nil, nil, fmt.Errorf("watch nodes: %w", err)
	}
	return cached, registered, nil
}

// selectedNodes returns the reader of the nodes that the scheduler selects.
func (w *wiring) selectedNodes() engine.SelectedNodes {
	selected := engine.SelectedNodes{Client: w.clients.Objects, HasTopology: w.driver.HasTopology(),
		Served: w.options.node.name(), Topology: w.topology}
	if selected.HasTopology && selected.Served == "" {
		selected.Cached = w.factory.Core().V1().Nodes().Lister()
	}
	return selected
}

// cloningOptions are the flags of the protection of cloned claims.
type cloningOptions struct {
	workers uint
}

func (o *cloningOptions) addFlags(flags *pflag.FlagSet) {
	flags.UintVar(&o.workers, "cloning-protection-threads", o.workers,
		"number of workers that remove the cloning-protection finalizer")
}

func (o *cloningOptions) check() error {
	if o.workers < 1 {
		return errors.New("--cloning-protection-threads must be at least 1: no other program removes the cloning-protection finalizer")
	}
	return nil
}

// wireCloning creates the controller that protects cloned claims, if the driver can clone.
func (w *wiring) wireCloning(context.Context) error {
	if !w.driver.Clones() {
		return nil
	}
	var err error
	if w.clones, err = sources.NewClones(w.clients.Objects, w.factory.Core().V1().PersistentVolumeClaims().Informer(),
		controller.NewReporter(w.recorder)); err != nil {
		return err
	}
	w.clones.TrackWaiting(w.measures.tracked.Waiting, w.servesClaim)
	w.runOnTerm(w.clones.Watch, func(ctx context.Context) { w.clones.Run(ctx, int(w.options.cloning.workers)) })
	return nil
}

// journalOptions are the flags of the journal.
type journalOptions struct {
	unresolvedAfter time.Duration
}

func (o *journalOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.unresolvedAfter, "journal-unresolved-after", o.unresolvedAfter,
		"how long CreateVolume is repeated for a deleted claim whose outcome only an administrator can determine; then exeunt journal list shows the journal entry")
}

func (o *journalOptions) check() error {
	if o.unresolvedAfter <= 0 {
		return errors.New("--journal-unresolved-after must be longer than 0")
	}
	return nil
}

// journal configures the journal of the driver, or of the driver on this node.
func (w *wiring) journal(ctx context.Context) (journalstore.Config, error) {
	client, err := w.clients.For("journal")
	if err != nil {
		return journalstore.Config{}, err
	}
	namespace, err := identity.JournalNamespace(ctx, w.clients.Objects, w.options.election.enabled,
		w.options.election.namespace)
	if err != nil {
		return journalstore.Config{}, err
	}
	return journalstore.Config{
		Client:   client,
		Journal:  journal.Journal{Namespace: namespace, Driver: w.driver.Name(), Node: w.options.node.name()},
		Off:      !w.options.Gates()[string(journalGate)],
		Recorder: w.recorder, Metrics: w.measures.journal,
	}, nil
}

// shortestAuditInterval keeps audits from being a load: each lists all volumes and pods.
const shortestAuditInterval = 10 * time.Minute

// auditOptions are the flags of audits.
type auditOptions struct {
	interval time.Duration
}

func (o *auditOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.interval, "audit-interval", o.interval,
		"time between two audits of the leader, which set the metric exeunt_orphaned_volumes and delete nothing; at least 10m, 0 for no audits")
}

func (o *auditOptions) check() error {
	if o.interval != 0 && o.interval < shortestAuditInterval {
		return errors.New("--audit-interval must be 0 or at least 10m")
	}
	return nil
}

// wireAudit creates the auditor, if audits are on and the driver can list its volumes.
func (w *wiring) wireAudit(ctx context.Context) error {
	switch {
	case w.options.audit.interval == 0:
		return nil
	case !w.driver.ListsVolumes():
		klog.FromContext(ctx).Info("No audits: the driver does not announce LIST_VOLUMES", "driver", w.driver.Name())
		return nil
	}
	cluster, err := audit.NewCluster("of the provisioner", rest.AddUserAgent(rest.CopyConfig(w.clients.Config), "audit"))
	if err != nil {
		return err
	}
	cluster.JournalNamespace, err = identity.JournalNamespace(ctx, w.clients.Objects, w.options.election.enabled,
		w.options.election.namespace)
	if err != nil {
		return err
	}
	auditor := &audit.Auditor{Driver: w.driver, Cluster: cluster, Interval: w.options.audit.interval,
		Metrics: w.measures.audit}
	w.work = append(w.work, auditor.Run)
	return nil
}

// snapshotOptions are the flags of the protection of snapshots.
type snapshotOptions struct {
	interval time.Duration
}

func (o *snapshotOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.interval, "snapshot-orphan-sweep-interval", o.interval,
		"time between two sweeps that remove the finalizer of snapshots no volume is restored from any more; 0 for no sweep")
}

func (o *snapshotOptions) check() error {
	if o.interval < 0 {
		return errors.New("--snapshot-orphan-sweep-interval must not be negative")
	}
	return nil
}

// wireSnapshots creates the controller that protects snapshots, if the driver has snapshots.
func (w *wiring) wireSnapshots(context.Context) error {
	if !w.driver.Snapshots() {
		return nil
	}
	client, err := metadata.NewForConfig(w.clients.Config)
	if err != nil {
		return fmt.Errorf("connect to the API server for snapshots: %w", err)
	}
	whole, err := w.snapshotClient()
	if err != nil {
		return err
	}
	elsewhere := w.servedElsewhere
	if w.options.snapshots.interval == 0 { // no sweep follows
		elsewhere = nil
	}
	w.snapshots, err = sources.NewSnapshots(sources.SnapshotConfig{
		Client: w.clients.Objects, Metadata: client, REST: whole.SnapshotV1().RESTClient(), Recorder: w.recorder,
		Claims:   w.factory.Core().V1().PersistentVolumeClaims().Informer(),
		Interval: w.options.snapshots.interval,
		Waiting:  w.measures.tracked.Waiting, Serves: w.servesClaim, Elsewhere: elsewhere,
	})
	if err != nil {
		return err
	}
	w.runOnTerm(w.snapshots.Watch, w.snapshots.Run)
	return nil
}

// snapshotClient returns the client of VolumeSnapshots. Custom resources support JSON only.
func (w *wiring) snapshotClient() (snapshotclient.Interface, error) {
	config := rest.CopyConfig(w.clients.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := snapshotclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server for snapshots: %w", err)
	}
	return client, nil
}
