package program

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// ErrLeaseLost: another process holds the lease or soon may, so this one must stop.
var ErrLeaseLost = errors.New("the leader lease was lost; stopping, so that two do not act at once")

const (
	// StopReserve is how long before the end of its lease a leader that cannot renew it
	// stops: the time that work needs to end, and a second for requests on their way.
	StopReserve = controller.ShutdownGracePeriod + time.Second
	// exitReserve is how long before the end of the lease the process ends though work
	// has not.
	exitReserve = 500 * time.Millisecond
)

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

// CheckDeadlines returns an error if the deadlines leave no time to renew the lease, or
// to end all work before the lease expires. The prefix is that of the flags' names.
func CheckDeadlines(prefix string, lease, renewal, retry time.Duration) error {
	switch {
	case retry <= 0 || renewal <= time.Duration(leaderelection.JitterFactor*float64(retry)):
		return fmt.Errorf("--%[1]s-renew-deadline must be longer than %[2]v times --%[1]s-retry-period, which must be longer than 0", prefix, leaderelection.JitterFactor)
	case lease.Truncate(time.Second) < renewal+StopReserve:
		return fmt.Errorf("--%[1]s-lease-duration, in whole seconds, must be at least %[2]v longer than --%[1]s-renew-deadline: a leader that cannot renew its lease needs that time to end its work before another may lead", prefix, StopReserve)
	}
	return nil
}

// Lead runs the function while this process holds the lease, and returns once it
// has ended. When the context ends, the function ends first and the lease is
// released after it, so that a standby takes over at once. It returns
// [ErrLeaseLost] if the lease could not be renewed or went to another process: the
// context of the function ends [StopReserve] before the lease expires. The watchdog
// learns of the election, to tell when this process goes on with an expired lease.
func Lead(ctx context.Context, config Election, client kubernetes.Interface, watchdog *leaderelection.HealthzAdaptor, run func(context.Context, controller.Term) error) error {
	if !config.LeaderElect {
		return run(ctx, controller.UnlimitedTerm())
	}
	name, err := identity(tokenFile)
	if err != nil {
		return err
	}
	keeping, letExpire := context.WithCancel(context.WithoutCancel(ctx))
	defer letExpire()
	election := &election{
		Election: config, client: client, watchdog: watchdog, vacant: make(chan struct{}, 1),
		term: newTerm(name, config.LeaseDuration.Duration), keeping: keeping, letExpire: letExpire,
	}
	watching, stopWatching := context.WithCancel(keeping)
	defer stopWatching()
	if config.Watched {
		go election.watch(watching, client)
	}
	return election.lead(ctx, func(leading context.Context) error {
		stopWatching() // a leader does not wait for a release
		return run(leading, election.term)
	})
}

// election is how one process stands by for a lease and renews it.
type election struct {
	Election
	client   kubernetes.Interface
	watchdog *leaderelection.HealthzAdaptor
	term     *term
	// vacant has an entry when the lease was released.
	vacant chan struct{}
	// keeping lasts for as long as the lease is acquired and renewed; letExpire ends it.
	keeping   context.Context
	letExpire context.CancelFunc
}

// lead leads until the context ends or the lease is lost. The lease is renewed until
// run has ended and released after that: the next leader must not meet a worker of
// ours that still writes.
func (e *election) lead(ctx context.Context, run func(context.Context) error) error {
	stopWaiting := context.AfterFunc(ctx, e.letExpire)
	ended := make(chan error, 1)
	work := func(leading context.Context) {
		defer e.letExpire()
		if !stopWaiting() { // stopped just before it became the leader
			ended <- nil
			return
		}
		working, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		go e.guard(stop)
		ended <- run(working)
	}
	state := int32(attemptGivenUp)
	for state == attemptGivenUp && e.keeping.Err() == nil {
		var err error
		if state, err = e.attempt(work); err != nil {
			return err
		}
	}
	if state == attemptLeads {
		return e.finish(ctx, ended)
	}
	e.release(ctx)
	return nil
}

// guard stops the work in time before the lease expires. Work that has not ended soon
// after that ends with the process.
func (e *election) guard(stop context.CancelFunc) {
	e.term.await(e.keeping, StopReserve)
	stop()
	select {
	case <-e.keeping.Done():
	case <-time.After(StopReserve - exitReserve):
		e.letExpire()
	}
}

// finish waits until the work has ended, but not longer than the lease lasts, and
// releases the lease then.
func (e *election) finish(ctx context.Context, ended <-chan error) error {
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	expiring := make(chan struct{})
	go func() {
		e.term.await(waiting, exitReserve)
		close(expiring)
	}()
	var err error
	select {
	case err = <-ended:
	case <-expiring:
		select {
		case err = <-ended:
		default:
			klog.FromContext(ctx).Info("Work has not ended, and the lease is about to expire")
			return ErrLeaseLost
		}
	}
	lost := ctx.Err() == nil
	e.release(ctx)
	if err == nil && lost {
		return ErrLeaseLost
	}
	return err
}

// release removes this process from the lease, if it was ever acquired.
func (e *election) release(ctx context.Context) {
	if !e.term.acquired() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Second, e.term.Remaining()))
	defer cancel()
	if err := releaseLease(ctx, e.leases().Leases(e.ResourceNamespace), e.ResourceName, e.term); err != nil {
		klog.FromContext(ctx).Error(err, "The lease was not released and has to expire")
	}
}

// What becomes of an attempt to get the lease: it is open until it leads, or is
// given up for another one, or ends. One of the three happens, and once.
const (
	attemptOpen = iota
	attemptLeads
	attemptGivenUp
	attemptEnded
)

// attempt stands by until it gets the lease, and leads then. An attempt is given up
// when the lease is vacant: the next one begins by asking for it.
func (e *election) attempt(work func(context.Context)) (int32, error) {
	var state atomic.Int32
	trying, giveUp := context.WithCancel(e.keeping)
	defer giveUp()
	elector, err := leaderelection.NewLeaderElector(e.config(leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leading context.Context) {
			if state.CompareAndSwap(attemptOpen, attemptLeads) {
				work(leading)
			}
		},
		OnStoppedLeading: func() {
			if state.Load() == attemptLeads {
				klog.FromContext(trying).Info("No longer the leader")
			}
		},
	}))
	if err != nil {
		return attemptEnded, fmt.Errorf("set up leader election: %w", err)
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
	state.CompareAndSwap(attemptOpen, attemptEnded)
	return state.Load(), nil
}

func (e *election) config(callbacks leaderelection.LeaderCallbacks) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          e.lock(),
		LeaseDuration: e.LeaseDuration.Duration,
		RenewDeadline: e.RenewDeadline.Duration,
		RetryPeriod:   e.RetryPeriod.Duration,
		Name:          e.ResourceName,
		Callbacks:     callbacks,
	}
}

// lock is the lease as the elector sees it.
func (e *election) lock() resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.ResourceNamespace, Name: e.ResourceName},
		Client:     e.leases(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.term.identity, EventRecorder: e.Recorder},
		Labels:     e.Labels,
	}
}

func (e *election) leases() leaseGetter {
	return leaseGetter{e.client.CoordinationV1(), e.term, e.RenewDeadline.Duration / 2}
}
