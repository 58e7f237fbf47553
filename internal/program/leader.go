package program

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"
)

// ErrLeaseLost: another process holds the lease, so this one must stop.
var ErrLeaseLost = errors.New("the leader lease was lost; stopping, so that two do not act at once")

// Election describes a lease that one of several processes holds.
type Election struct {
	componentconfig.LeaderElectionConfiguration
	// Labels are put on the lease by whoever gets it.
	Labels map[string]string
}

// Lead runs the function while this process holds the lease, and returns once it
// has ended. When the context ends, the function ends first and the lease is
// released after it, so that a standby takes over at once. It returns
// [ErrLeaseLost] if the lease went to somebody else. The watchdog learns of the
// election, to tell when this process goes on with a lease that it did not renew.
func Lead(ctx context.Context, config Election, client kubernetes.Interface, watchdog *leaderelection.HealthzAdaptor, run func(context.Context) error) error {
	if !config.LeaderElect {
		return run(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name for the leader lease: %w", err)
	}
	lock, err := resourcelock.NewWithLabels(config.ResourceLock, config.ResourceNamespace, config.ResourceName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config.Labels)
	if err != nil {
		return fmt.Errorf("set up the leader lease: %w", err)
	}
	return hold(ctx, config, lock, watchdog, run)
}

// hold leads until the context ends or the lease is lost. The lease outlives the
// context until run has ended: whoever gets it must not meet a worker of ours that
// is still writing.
func hold(ctx context.Context, config Election, lock resourcelock.Interface, watchdog *leaderelection.HealthzAdaptor, run func(context.Context) error) error {
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	stopWaiting := context.AfterFunc(ctx, release)
	result := make(chan error, 1)
	lead := func(leading context.Context) {
		defer release()
		if !stopWaiting() { // stopped just before it became the leader
			return
		}
		working, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		result <- run(working)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   config.LeaseDuration.Duration,
		RenewDeadline:   config.RenewDeadline.Duration,
		RetryPeriod:     config.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		Name:            config.ResourceName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() { klog.FromContext(ctx).Info("No longer the leader") },
		},
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	watchdog.SetLeaderElection(elector)
	elector.Run(holding)
	return outcome(ctx, result)
}

// outcome is the error of run, if it has one. Where nobody asked for the end, it
// came because the lease was lost.
func outcome(ctx context.Context, result <-chan error) error {
	select {
	case err := <-result:
		if err != nil {
			return err
		}
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	return ErrLeaseLost
}
