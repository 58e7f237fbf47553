package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

const (
	// agent is the user agent of the program, and the component of its events.
	agent = "node-terminator"
	// expiryTolerance is how long a leader may go on after its lease has expired until its health check fails.
	expiryTolerance = 20 * time.Second
)

// terminator is the program while it runs.
type terminator struct {
	*options
	clients *program.Clients
	clock   *servertime.Clock
	caches  *nodeterminator.Caches
	factory informers.SharedInformerFactory
	// budgets and namespaces are nil if they may not be read.
	budgets, namespaces cache.SharedIndexInformer
	machines            instances.Provider
	claims              *nodeterminator.Claims
	recorder            record.EventRecorder
}

// Run runs until the context ends. Caches sync before the lease is acquired, so that a replica on standby can lead at
// once.
func (o *options) Run(ctx context.Context) error {
	heap.Pace()
	clients, err := o.Clients(agent)
	if err != nil {
		return err
	}
	t := &terminator{options: o, clients: clients, clock: servertime.New()}
	if !clients.WaitForAPIServer(ctx) {
		return nil
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(expiryTolerance)
	stopServing, err := o.serving.Serve(t.checks(watchdog))
	if err != nil {
		return err
	}
	defer stopServing()
	recorder, stopEvents := controller.Recorder(ctx, clients.Events, agent)
	defer stopEvents()
	t.recorder = recorder
	watching, stopWatching := context.WithCancel(ctx)
	t.factory.StartWithContext(watching)
	defer t.factory.Shutdown()
	defer stopWatching()
	klog.FromContext(ctx).Info("Filling caches", "instances", o.instances)
	if !clients.WaitForCacheSync(ctx, t.factory) {
		return nil
	}
	election := leader.Election{LeaderElectionConfiguration: o.leader, Watched: true, Recorder: recorder,
		Connection: clients.Connection}
	return leader.Lead(ctx, election, clients.Leases, watchdog, t.lead)
}

// connect makes clients and caches. Each answer to the client of the work sets the clock.
func (t *terminator) connect(ctx context.Context) error {
	t.clients.Config.Wrap(t.clock.Wrap)
	var err error
	if t.clients.Objects, err = t.clients.For(""); err != nil {
		return err
	}
	partial, err := t.clients.Partial("", nodeterminator.Rules())
	if err != nil {
		return err
	}
	t.factory = informers.NewSharedInformerFactory(partial, 0)
	if t.caches, err = nodeterminator.NewCaches(t.factory); err != nil {
		return err
	}
	if t.socket != "" {
		if t.machines, err = instances.Open(t.socket); err != nil {
			return err
		}
	}
	missing, err := nodeterminator.MissingRights(ctx, t.clients.Objects, t.namespace)
	if err != nil {
		return err
	}
	for _, one := range missing {
		klog.FromContext(ctx).Info("A right is missing", "verb", one.Verb, "resource", one.Resource,
			"namespace", one.Namespace, "without", one.Without)
	}
	if err := t.connectClaims(ctx); err != nil {
		return err
	}
	return t.watchBudgets(ctx)
}

// connectClaims makes the clients of NodeClaims. Without the right to watch definitions there are none.
func (t *terminator) connectClaims(ctx context.Context) error {
	may, err := controller.MayWatch(ctx, t.clients.Objects,
		schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "")
	if err != nil {
		return err
	}
	if !may {
		klog.FromContext(ctx).Info("NodeClaims are not read: a right is missing", "verbs", "list and watch",
			"resource", "customresourcedefinitions")
		return nil
	}
	config := rest.CopyConfig(t.clients.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	objects, objectsErr := dynamic.NewForConfig(config)
	definitions, definitionsErr := metadata.NewForConfig(config)
	if err := errors.Join(objectsErr, definitionsErr); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	t.claims = nodeterminator.NewClaims(objects, definitions)
	return nil
}

// watchBudgets makes the caches that a drain uses, as far as this process may read them.
func (t *terminator) watchBudgets(ctx context.Context) (err error) {
	t.budgets, err = t.readable(ctx, "policy", "poddisruptionbudgets",
		t.factory.Policy().V1().PodDisruptionBudgets().Informer, controller.StripManagedFields)
	if err != nil {
		return err
	}
	t.namespaces, err = t.readable(ctx, "", "namespaces", t.factory.Core().V1().Namespaces().Informer,
		nodeterminator.TrimNamespace)
	return err
}

// readable returns the informer of a resource, nil if this process may not read the resource.
func (t *terminator) readable(ctx context.Context, group, resource string, informer func() cache.SharedIndexInformer,
	trim cache.TransformFunc) (cache.SharedIndexInformer, error) {
	may, err := controller.MayWatch(ctx, t.clients.Objects, schema.GroupResource{Group: group, Resource: resource}, "")
	if err != nil || !may {
		return nil, err
	}
	readable := informer()
	if err := readable.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("set up cache of %s: %w", resource, err)
	}
	return readable, nil
}

// checks returns the health checks: a leader holds its lease, and all caches have synced.
func (t *terminator) checks(watchdog *leaderelection.HealthzAdaptor) serving.Checks {
	return serving.Checks{Live: []healthz.HealthChecker{watchdog},
		Ready: serving.InformerSync(map[string]cache.InformerSynced{
			"nodes":       t.caches.Nodes.HasSynced,
			"attachments": t.caches.Attachments.HasSynced,
			"volumes":     t.caches.Volumes.HasSynced,
		})}
}

// lead terminates nodes while this process leads. Requests of the work have no rate limit of the client.
func (t *terminator) lead(ctx context.Context, term controller.Term) error {
	unlimited := rest.CopyConfig(t.clients.Config)
	unlimited.QPS, unlimited.Burst = -1, 0
	evictions, forced, err := drain.Lanes(unlimited)
	if err != nil {
		return err
	}
	var c *nodeterminator.Controller
	drainer := drain.New(ctx, drain.Config{Client: t.clients.Objects, Evictions: evictions, Forced: forced,
		Budgets: t.budgets, NamespaceEnds: t.ends, Recorder: t.recorder, Leading: term.Leading,
		Notify: func(node string) { c.Notify(node) }})
	if err := drainer.Register(legacyregistry.Registerer()); err != nil {
		return err
	}
	defer drainer.Wait()
	c = nodeterminator.New(nodeterminator.Config{Client: t.clients.Objects, Caches: t.caches, Drainer: pods{drainer},
		Provider: providers[t.instances], Instances: t.machines, Recorder: t.recorder, Clock: t.clock,
		Namespace: t.namespace, Claims: t.claims, MaxDisrupted: t.maxDisrupted, Leading: term.Leading})
	if err := c.Register(legacyregistry.Registerer()); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Working", "workers", t.workers)
	if err := c.Run(ctx, t.workers); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// ends reports whether the namespace is being deleted, as far as that is known.
func (t *terminator) ends(name string) bool {
	if t.namespaces == nil {
		return false
	}
	namespace := controller.Lookup[*v1.Namespace](t.namespaces, name)
	return namespace != nil && namespace.DeletionTimestamp != nil
}

// pods are those that a drainer ends.
type pods struct{ *drain.Drainer }

// Pods returns the pods of the node.
func (p pods) Pods(name string, uid types.UID) nodeterminator.Pods { return p.Node(name, uid) }
