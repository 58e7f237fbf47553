package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/pkg/garbagecollector"
)

const (
	// agent is the user agent of the program.
	agent = "garbage-collector"
	// expiryTolerance is how long a leader may go on after its lease has expired until its
	// health check fails.
	expiryTolerance = 20 * time.Second
)

// Run runs until the context ends. The graph is filled before the lease is acquired, so that
// a replica on standby can lead at once.
func (o *options) Run(ctx context.Context) error {
	heap.Pace()
	clients, err := o.Clients(agent)
	if err != nil || !clients.WaitForAPIServer(ctx) {
		return err
	}
	recorder, stopEvents := controller.Recorder(ctx, clients.Events, blocker.GarbageEventSource,
		record.WithCorrelatorOptions(garbagecollector.EventLimits))
	defer stopEvents()
	collector, err := o.newCollector(clients, recorder)
	if err != nil {
		return err
	}
	if err := collector.Register(legacyregistry.Registerer()); err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(expiryTolerance)
	o.serving.Handle(garbagecollector.DebugPath, collector)
	o.serving.Handle(garbagecollector.StockDebugPath, collector)
	stopServing, err := o.serving.Serve(serving.Checks{
		Live:  []healthz.HealthChecker{watchdog},
		Ready: []healthz.HealthChecker{healthz.NamedCheck("graph", func(*http.Request) error { return collector.Ready() })},
	})
	if err != nil {
		return err
	}
	defer stopServing()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer watchInBackground(ctx, collector, end)() // also on standby
	election := leader.Election{LeaderElectionConfiguration: o.leader, Watched: true, Recorder: recorder,
		Connection: clients.Connection}
	err = leader.Lead(ctx, election, clients.Leases, watchdog, func(ctx context.Context,
		_ controller.Term) error {
		return collector.Collect(ctx)
	})
	if restored := context.Cause(ctx); errors.Is(restored, garbagecollector.ErrRestored) {
		return restored
	}
	return err
}

// watchInBackground fills the graph until stop is called. An error of the watch is the cause with which it calls end.
func watchInBackground(ctx context.Context, collector *garbagecollector.Collector,
	end context.CancelCauseFunc) (stop func()) {
	watching, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := collector.Watch(watching); err != nil {
			end(err)
		}
	}()
	return func() {
		stopWatching()
		<-watched
	}
}

// newCollector connects the collector. Watches, barriers, live reads and writes have rate limits of
// their own. Live reads and writes take theirs before a judgement begins to grow old.
func (o *options) newCollector(clients *program.Clients,
	recorder record.EventRecorder) (*garbagecollector.Collector, error) {
	throttle := garbagecollector.NewThrottle(clock.RealClock{})
	config := rest.CopyConfig(clients.Config)
	config.Wrap(throttle.Wrap)
	unlimited := rest.CopyConfig(config)
	unlimited.QPS, unlimited.Burst = -1, 0
	reads, readsErr := metadata.NewForConfig(config)
	live, liveErr := metadata.NewForConfig(unlimited)
	barriers, barriersErr := metadata.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), agent+"-barrier"))
	kinds, kindsErr := discovery.NewDiscoveryClientForConfig(unlimited)
	writes, writesErr := garbagecollector.NewWriteClient(unlimited)
	if err := errors.Join(readsErr, liveErr, barriersErr, kindsErr, writesErr); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	var limiter, readLimiter flowcontrol.RateLimiter
	if o.QPS > 0 {
		limiter, readLimiter = flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst),
			flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst)
	}
	return garbagecollector.New(garbagecollector.Config{
		Reads: reads, Barriers: barriers, Live: live, REST: writes, Discovery: kinds, Recorder: recorder,
		Clock: clock.RealClock{}, Limiter: limiter, ReadLimiter: readLimiter, Throttle: throttle,
		Detection: o.detection(clients.Leases), Workers: o.workers, DryRun: o.dryRun, Ignored: o.resources,
		UnreadableAfter: o.unreadableAfter, OrphanUnreadableAfter: o.orphanUnreadableAfter,
	}), nil
}

// detection returns how other garbage collectors are detected; nil if they are not.
func (o *options) detection(client kubernetes.Interface) *garbagecollector.Detection {
	if !o.detectOthers || o.dryRun {
		return nil
	}
	namespace := o.leader.ResourceNamespace
	return &garbagecollector.Detection{Client: client.CoordinationV1().Leases(namespace), Namespace: namespace,
		LeaderLease: o.leader.ResourceName}
}
