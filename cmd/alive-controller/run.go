package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/internal/heap"
	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

const (
	// agent is the user agent of the program, and the component of its events.
	agent = "alive-controller"
	// expiryTolerance is how long a leader may go on after its lease has expired until its health check fails.
	expiryTolerance = 20 * time.Second
	// retryPeriod is the time between two attempts to read the ID of the cluster, and after an error of the runner.
	retryPeriod = 2 * time.Second
)

// Run runs until the context ends.
func (o *options) Run(ctx context.Context) error {
	heap.Pace()
	clients, err := o.Clients(agent)
	if err != nil || !clients.WaitForAPIServer(ctx) {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(expiryTolerance)
	stopServing, err := o.serving.Serve(serving.Checks{Live: []healthz.HealthChecker{watchdog}})
	if err != nil {
		return err
	}
	defer stopServing()
	config, err := configFor(clients)
	if err != nil {
		return err
	}
	recorder, stopEvents := controller.Recorder(ctx, clients.Events, agent)
	defer stopEvents()
	config.Recorder, config.Watchdog = recorder, watchdog
	shown := &progress{}
	config.Follow = shown.follow
	if err := shown.register(legacyregistry.Registerer()); err != nil {
		return err
	}
	if config.Cluster = awaitID(ctx, clients); config.Cluster == "" {
		return nil
	}
	klog.FromContext(ctx).Info("Watching Alive", "cluster", config.Cluster)
	return work(ctx, config)
}

// configFor returns the configuration of a runner. The connection of the clients holds back writes of a leader whose Lease
// may have changed.
func configFor(clients *program.Clients) (runner.Config, error) {
	connected, err := runner.Connect(clients.Config, clients.Connection)
	if err != nil {
		return runner.Config{}, err
	}
	return runner.Config{Clients: connected, Waits: runner.DefaultWaits(), Agent: agent,
		Check: connected.Checker(plan.Options{}), Permitted: connected.MissingRights}, nil
}

// awaitID returns the ID of the cluster, "" if the context ended first. Without it nothing is confirmed.
func awaitID(ctx context.Context, clients *program.Clients) types.UID {
	for {
		system, exists, err := answer.Get(ctx, metav1.NamespaceSystem, clients.Objects.CoreV1().Namespaces().Get)
		if err == nil && exists {
			return system.UID
		}
		if err == nil {
			err = fmt.Errorf("there is no namespace %s", metav1.NamespaceSystem)
		}
		if !sleep(ctx, retryPeriod) {
			return ""
		}
		klog.FromContext(ctx).Error(err, "The ID of the cluster could not be read")
	}
}

// work runs one runner after the other: after the end of a teardown a new Alive may be created.
func work(ctx context.Context, config runner.Config) error {
	for {
		outcome, err := runner.New(config).Run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, runner.ErrOtherCluster):
			return err // a new process reads which cluster this is
		case err != nil:
			klog.FromContext(ctx).Error(err, "The teardown has ended")
		case outcome != nil:
			klog.FromContext(ctx).Info("The teardown has ended", "phase", outcome.Phase, "reason", outcome.Reason)
		}
		if !sleep(ctx, retryPeriod) {
			return nil
		}
	}
}

// sleep returns false if the context ended first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
