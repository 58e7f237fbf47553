package program

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
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
	// Recorder tells, by events of the lease, who leads; it may be nil.
	Recorder resourcelock.EventRecorder
	// Watched has a standby watch the lease, so that it takes over when the lease is
	// released, and not only when it tries again. It needs the right to.
	Watched bool
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
	name, err := identity(tokenFile)
	if err != nil {
		return err
	}
	lock, err := resourcelock.NewWithLabels(config.ResourceLock, config.ResourceNamespace, config.ResourceName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name, EventRecorder: config.Recorder}, config.Labels)
	if err != nil {
		return fmt.Errorf("set up the leader lease: %w", err)
	}
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	election := &election{Election: config, lock: lock, watchdog: watchdog, vacant: make(chan struct{}, 1)}
	watching, stopWatching := context.WithCancel(holding)
	defer stopWatching()
	if config.Watched {
		go election.watch(watching, client)
	}
	return election.hold(ctx, holding, release, func(leading context.Context) error {
		stopWatching() // what was to be learned is that we lead
		return run(leading)
	})
}

// election is how one process stands by for a lease and holds it.
type election struct {
	Election
	lock     resourcelock.Interface
	watchdog *leaderelection.HealthzAdaptor
	// vacant has an entry when the lease was released.
	vacant chan struct{}
}

// hold leads until the context ends or the lease is lost. The lease outlives the
// context until run has ended: whoever gets it must not meet a worker of ours that
// is still writing.
func (e *election) hold(ctx, holding context.Context, release context.CancelFunc, run func(context.Context) error) error {
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
	for again := true; again && holding.Err() == nil; {
		var err error
		if again, err = e.attempt(holding, lead); err != nil {
			return err
		}
	}
	return outcome(ctx, result)
}

// What becomes of an attempt to get the lease: it is open until it leads, or is
// given up for another one. One of the two happens, and once.
const (
	attemptOpen = iota
	attemptLeads
	attemptGivenUp
)

// attempt stands by until it gets the lease, and leads then. It returns true when it
// has given up because the lease is vacant: the next attempt begins by asking for it.
func (e *election) attempt(holding context.Context, lead func(context.Context)) (again bool, err error) {
	var state atomic.Int32
	trying, giveUp := context.WithCancel(holding)
	defer giveUp()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            e.lock,
		LeaseDuration:   e.LeaseDuration.Duration,
		RenewDeadline:   e.RenewDeadline.Duration,
		RetryPeriod:     e.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		Name:            e.ResourceName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				if state.CompareAndSwap(attemptOpen, attemptLeads) {
					lead(leading)
				}
			},
			OnStoppedLeading: func() {
				if state.Load() == attemptLeads {
					klog.FromContext(holding).Info("No longer the leader")
				}
			},
		},
	})
	if err != nil {
		return false, fmt.Errorf("set up leader election: %w", err)
	}
	go func() {
		select {
		case <-e.vacant:
			if state.CompareAndSwap(attemptOpen, attemptGivenUp) {
				giveUp()
			}
		case <-trying.Done():
		}
	}()
	e.watchdog.SetLeaderElection(elector)
	elector.Run(trying)
	return state.Load() == attemptGivenUp, nil
}

// watch tells of every time that the lease is released, until the context ends.
func (e *election) watch(ctx context.Context, client kubernetes.Interface) {
	tell := func() {
		select {
		case e.vacant <- struct{}{}:
		default:
		}
	}
	one := fields.OneTermEqualSelector("metadata.name", e.ResourceName).String()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(e.ResourceNamespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.FieldSelector = one }))
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if isHeld(before) && !isHeld(after) {
				tell()
			}
		},
		DeleteFunc: func(any) { tell() },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching the lease failed, trying to get it from time to time")
		return
	}
	informer.RunWithContext(ctx)
}

func isHeld(object any) bool {
	lease, ok := object.(*coordinationv1.Lease)
	return ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
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
