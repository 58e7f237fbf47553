package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// ErrLeaseLost is returned when another process holds the lease or soon may.
var ErrLeaseLost = errors.New("the leader lease was lost; stopping, so that two do not act at once")

// ErrRestored is returned when the Lease is older than a Lease that this process wrote or read before.
var ErrRestored = errors.New("the leader Lease is older than what this process knows: etcd was restored from a backup, or the Lease was edited; stopping, so that nothing which this process remembers is used")

// ErrUnconfirmed: since the connection to the API server was interrupted, or a renewal failed, the leader Lease was not
// found unchanged yet.
var ErrUnconfirmed = errors.New("it is not known yet whether etcd was restored while the API server was away")

// ErrWorkNotEnded is returned when the work goes on after the context has ended. The lease is
// not released: another process leads after the lease has expired.
var ErrWorkNotEnded = fmt.Errorf("the work has not ended within %v after the request to stop; the leader lease has to expire", StopReserve)

const (
	// StopReserve is the rest of an unrenewed lease at which its leader stops: the grace
	// period of the workers, and a second for requests in flight.
	StopReserve = controller.ShutdownGracePeriod + time.Second
	// exitReserve is the rest of an unrenewed lease at which Lead returns even if the work
	// has not ended.
	exitReserve = 500 * time.Millisecond
)

// Election configures the leader election of one lease.
type Election struct {
	componentconfig.LeaderElectionConfiguration
	// Labels are set on the lease by its holder.
	Labels map[string]string
	// Recorder sends an event of the lease for each new leader; it may be nil.
	Recorder resourcelock.EventRecorder
	// Watched has a process on standby watch the lease, so that it acquires a released lease
	// at once instead of after RetryPeriod. It needs the right to watch the lease.
	Watched bool
	// Connection is the one of all clients of this program; nil if interruptions are known from the requests of the Lease only.
	Connection *Connection
}

// Lead runs the function while this process holds the lease, and returns once the function
// has returned. When the context ends, Lead releases the lease after the function has
// returned, so that another replica leads at once; a function that does not return within
// [StopReserve] gets [ErrWorkNotEnded], and the lease has to expire. If the lease cannot be renewed, the
// context of the function ends [StopReserve] before the lease expires, and Lead returns
// [ErrLeaseLost]; likewise if another process took the lease. If the lease is older than this process
// knows, etcd was restored from a backup, and Lead returns [ErrRestored], on standby too. The watchdog
// fails the health check of a process that leads with an expired lease.
//
// An error of the function after the end of the context is logged only: caches end with the same context, perhaps a
// moment before the function.
func Lead(ctx context.Context, config Election, client kubernetes.Interface, watchdog *leaderelection.HealthzAdaptor,
	run func(context.Context, controller.Term) error) error {
	if !config.LeaderElect {
		return failureOf(ctx, run(ctx, controller.UnlimitedTerm()))
	}
	name, err := controller.Identity()
	if err != nil {
		return err
	}
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRenewing()
	if config.Connection == nil {
		config.Connection = &Connection{}
	}
	election := &election{
		Election: config, client: client, watchdog: watchdog, released: make(chan struct{}, 1), renewing: renewing,
		stopRenewing: stopRenewing,
		term:         newTerm(name, config.LeaseDuration.Duration, config.RetryPeriod.Duration, config.Connection),
	}
	watching, stopWatching := context.WithCancel(renewing)
	defer stopWatching()
	if config.Watched {
		go election.watchLease(watching, client)
	}
	return election.lead(ctx, func(leading context.Context) error {
		stopWatching() // a leader waits for no release
		defer config.Connection.guard(election.confirm)()
		return failureOf(ctx, run(leading, election))
	})
}

// failureOf returns the error of the work, nil if the context has ended.
func failureOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		klog.FromContext(ctx).Info("Work has ended with an error after it was to end", "err", err)
		return nil
	}
	return err
}

// election acquires and renews a lease for this process.
type election struct {
	Election
	client   kubernetes.Interface
	watchdog *leaderelection.HealthzAdaptor
	term     *term
	// released has an entry when another process released the lease.
	released chan struct{}
	// confirming is the read of the lease that confirms it.
	confirming singleflight.Group
	// renewing is the context of acquiring and renewing the lease; stopRenewing ends it.
	renewing     context.Context
	stopRenewing context.CancelFunc
}

// lead acquires the lease and runs the function until the context ends or the lease is
// lost. The lease is renewed until run has returned and released only then: no worker of
// this process may write beside the next leader. A worker that ignores the end of the
// context must not keep the lease for ever.
func (e *election) lead(ctx context.Context, run func(context.Context) error) error {
	stopAcquiring := context.AfterFunc(ctx, e.stopRenewing)
	ended, overdue := make(chan error, 1), make(chan struct{})
	work := func(leading context.Context) {
		defer e.stopRenewing()
		if !stopAcquiring() { // the context ended just before the lease was acquired
			ended <- nil
			return
		}
		working, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		defer context.AfterFunc(ctx, func() { e.limitStop(overdue) })()
		go e.stopBeforeExpiry(stop)
		ended <- run(working)
	}
	outcome := restarted
	for outcome == restarted && e.renewing.Err() == nil {
		var err error
		if outcome, err = e.acquire(work); err != nil {
			return err
		}
	}
	if outcome == acquired {
		return e.finish(ctx, ended, overdue)
	}
	e.releaseLease(ctx)
	return e.term.lostBy()
}

// stopBeforeExpiry stops the work [StopReserve] before the lease expires. It stops the
// renewal exitReserve before the lease expires, even if the work has not ended.
func (e *election) stopBeforeExpiry(stop context.CancelFunc) {
	e.term.await(e.renewing, StopReserve)
	stop()
	select {
	case <-e.renewing.Done():
	case <-time.After(StopReserve - exitReserve):
		e.stopRenewing()
	}
}

// limitStop ends the renewal and closes overdue if the work has not ended [StopReserve] after
// the context has ended.
func (e *election) limitStop(overdue chan<- struct{}) {
	select {
	case <-e.renewing.Done():
	case <-time.After(StopReserve):
		close(overdue)
		e.stopRenewing()
	}
}

// finish waits until the work has ended, and then releases the lease. It does not wait
// longer than the lease lasts, nor after overdue is closed: then the lease has to expire.
func (e *election) finish(ctx context.Context, ended <-chan error, overdue <-chan struct{}) error {
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	expiring := make(chan struct{})
	go func() {
		e.term.await(waiting, exitReserve)
		close(expiring)
	}()
	var err, late error
	select {
	case err = <-ended:
	case <-expiring:
		late = cmp.Or(e.term.lostBy(), ErrLeaseLost)
	case <-overdue:
		late = ErrWorkNotEnded
	}
	if late != nil {
		select {
		case err = <-ended:
		default:
			klog.FromContext(ctx).Info("Work has not ended, and the lease is not released", "reason", late)
			return late
		}
	}
	lost := ctx.Err() == nil
	e.releaseLease(ctx)
	if err == nil && lost {
		return cmp.Or(e.term.lostBy(), ErrLeaseLost)
	}
	return err
}

// releaseLease removes this process from the lease, if this process ever wrote it: a write without an answer may have
// acquired it. A restored lease stays as it is, for the processes on standby to see.
func (e *election) releaseLease(ctx context.Context) {
	if !e.term.mayHold() || errors.Is(e.term.lostBy(), ErrRestored) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Second, e.term.remaining()))
	defer cancel()
	if err := removeHolder(ctx, e.leases().Leases(e.ResourceNamespace), e.ResourceName, e.term); err != nil {
		klog.FromContext(ctx).Error(err, "The lease was not released and has to expire")
	}
}

// acquisition is the outcome of one run of client-go's elector.
type acquisition int32

// The outcomes of an acquisition.
const (
	// acquiring: the elector still waits for the lease.
	acquiring acquisition = iota
	// acquired: this process leads, or has led.
	acquired
	// restarted: the lease was released; a new elector requests the lease at once.
	restarted
	// acquisitionEnded: the context ended before the lease was acquired.
	acquisitionEnded
)

// String returns the outcome in words.
func (a acquisition) String() string {
	switch a {
	case acquiring:
		return "acquiring"
	case acquired:
		return "acquired"
	case restarted:
		return "restarted"
	case acquisitionEnded:
		return "ended"
	}
	return "unknown"
}

// acquire runs an elector, which waits for the lease and then calls work. An elector cannot
// retry early: a released lease ends the elector, and the caller runs another elector.
func (e *election) acquire(work func(context.Context)) (acquisition, error) {
	var outcome atomic.Int32
	setOutcome := func(to acquisition) bool { return outcome.CompareAndSwap(int32(acquiring), int32(to)) }
	electing, stopElector := context.WithCancel(e.renewing)
	defer stopElector()
	elector, err := leaderelection.NewLeaderElector(e.config(leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leading context.Context) {
			if setOutcome(acquired) {
				work(leading)
			}
		},
		OnStoppedLeading: func() {
			if acquisition(outcome.Load()) == acquired {
				klog.FromContext(electing).Info("No longer the leader")
			}
		},
	}))
	if err != nil {
		return acquisitionEnded, fmt.Errorf("set up leader election: %w", err)
	}
	go func() {
		select {
		case <-e.released:
			if setOutcome(restarted) {
				stopElector()
			}
		case <-e.term.lost:
			if setOutcome(acquisitionEnded) {
				stopElector()
			}
		case <-electing.Done():
		}
	}()
	e.watchdog.SetLeaderElection(elector)
	elector.Run(electing)
	setOutcome(acquisitionEnded)
	return acquisition(outcome.Load()), nil
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

// lock returns the lease for the elector.
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
