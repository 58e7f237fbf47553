package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// leader holds a lease whose requests the test can have fail.
type leader struct {
	*testing.T
	client *fake.Clientset
	// delay is how long each request of the lease takes and fails after; 0 for none.
	delay   atomic.Int64
	renewed atomic.Int64 // when the last renewal was sent
	term    *term
	// working is the context of the work, which ends when end is closed.
	working context.Context
	end     chan struct{}
	stop    context.CancelFunc
	ended   chan error
	// conflict: updates of the Lease fail.
	conflict atomic.Bool
	// failure is the error of the work.
	failure error
}

func lead(t *testing.T, deadlines componentconfig.LeaderElectionConfiguration) *leader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	lease := heldBy("")
	lease.UID, lease.Spec.LeaseTransitions = "lease", ptr.To[int32](7)
	l := &leader{T: t, client: fake.NewClientset(lease), end: make(chan struct{}), stop: stop, ended: make(chan error, 1)}
	l.client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if delay := time.Duration(l.delay.Load()); delay > 0 {
			<-time.After(delay)
			return true, nil, context.DeadlineExceeded
		}
		if l.conflict.Load() && action.GetVerb() == "update" {
			return true, nil, errors.New("conflict")
		}
		if update, ok := action.(clienttesting.UpdateAction); ok &&
			ptr.Deref(update.GetObject().(*coordinationv1.Lease).Spec.HolderIdentity, "") != "" {
			l.renewed.Store(time.Now().UnixNano())
		}
		return false, nil, nil
	})
	led := make(chan struct{})
	go func() {
		watchdog := leaderelection.NewLeaderHealthzAdaptor(time.Minute)
		l.ended <- Lead(ctx, Election{LeaderElectionConfiguration: deadlines}, l.client, watchdog,
			func(working context.Context, term controller.Term) error {
				l.working, l.term = working, term.(*election).term
				close(led)
				<-l.end
				return l.failure
			})
	}()
	<-led
	return l
}

// sinceRenewal returns the time since the last successful renewal was sent.
func (l *leader) sinceRenewal() time.Duration {
	return time.Since(time.Unix(0, l.renewed.Load()))
}

func (l *leader) lease() *coordinationv1.Lease {
	l.Helper()
	object, err := l.client.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "ns", "program")
	if err != nil {
		l.Fatal(err)
	}
	return object.(*coordinationv1.Lease)
}

func (l *leader) write(change func(*coordinationv1.Lease)) {
	l.Helper()
	lease := l.lease().DeepCopy()
	change(lease)
	if err := l.client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease,
		"ns"); err != nil {
		l.Fatal(err)
	}
}

func deadlines(lease, renewal, retry time.Duration) componentconfig.LeaderElectionConfiguration {
	config := lasting
	config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = metav1.Duration{Duration: lease},
		metav1.Duration{Duration: renewal}, metav1.Duration{Duration: retry}
	return config
}

func TestWorkEndsBeforeAnUnrenewedLeaseExpires(t *testing.T) {
	for name, config := range map[string]componentconfig.LeaderElectionConfiguration{
		"csi-provisioner":         deadlines(15*time.Second, 10*time.Second, 5*time.Second),
		"kube-controller-manager": deadlines(15*time.Second, 10*time.Second, 2*time.Second),
		"long":                    deadlines(137*time.Second, 107*time.Second, 26*time.Second),
		"no more than needed":     deadlines(8*time.Second, 4*time.Second, 3*time.Second),
		"a long retry period":     deadlines(20*time.Second, 16*time.Second, 13*time.Second),
	} {
		for failure, delay := range map[string]time.Duration{"fail": time.Nanosecond,
			"hang": config.RenewDeadline.Duration / 2} {
			t.Run(name+", requests "+failure, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := lead(t, config)
					<-time.After(config.RetryPeriod.Duration * 3 / 2)
					l.delay.Store(int64(delay))
					<-l.working.Done()
					<-time.After(controller.ShutdownGracePeriod)
					if past := l.sinceRenewal(); past >= config.LeaseDuration.Duration || past < config.RenewDeadline.Duration {
						t.Errorf("the work ended %s after the last renewal; the lease is valid for %s", past,
							config.LeaseDuration.Duration)
					}
					close(l.end)
					if err := <-l.ended; !errors.Is(err, ErrLeaseLost) {
						t.Errorf("Lead = %v, want ErrLeaseLost", err)
					}
				})
			})
		}
	}
}

func TestLeaseIsReleasedAfterWorkEnded(t *testing.T) {
	for name, end := range map[string]func(*leader){
		"stopped": func(l *leader) { l.stop() },
		"the lease was not renewed for a while": func(l *leader) {
			l.delay.Store(1)
			<-l.working.Done()
			l.delay.Store(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, lasting)
				end(l)
				<-l.working.Done()
				<-time.After(controller.ShutdownGracePeriod)
				if holder := *l.lease().Spec.HolderIdentity; holder == "" {
					t.Error("the lease was released while work went on")
				}
				close(l.end)
				if err := <-l.ended; err != nil && !errors.Is(err, ErrLeaseLost) {
					t.Error(err)
				}
				if holder := *l.lease().Spec.HolderIdentity; holder != "" {
					t.Errorf("the lease names %q after the work has ended", holder)
				}
			})
		})
	}
}

// A handler that is registered while the program ends is refused by an informer that has ended.
func TestErrorAfterTheEndIsNoFailure(t *testing.T) {
	for name, stopped := range map[string]bool{"stopped": true, "not stopped": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, lasting)
				l.failure = errors.New("the informer has stopped")
				if stopped {
					l.stop()
				}
				close(l.end)
				if err := <-l.ended; (err == nil) != stopped {
					t.Errorf("Lead = %v", err)
				}
				l.stop()
			})
		})
	}
}

func TestStoppedLeaderRenewsUntilWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, lasting)
		l.stop()
		<-time.After(StopReserve - time.Second)
		if past := l.sinceRenewal(); past > lasting.RetryPeriod.Duration {
			t.Errorf("the last renewal was %s ago", past)
		}
		close(l.end)
		if err := <-l.ended; err != nil {
			t.Error(err)
		}
	})
}

// A worker ignores its context: the lease is neither renewed nor released, and another
// replica leads once the lease has expired.
func TestEndlessWorkOfStoppedLeaderEndsRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, lasting)
		defer close(l.end)
		<-time.After(time.Minute)
		l.stop()
		stopped := time.Now()
		select {
		case err := <-l.ended:
			if took := time.Since(stopped); !errors.Is(err, ErrWorkNotEnded) || took != StopReserve {
				t.Errorf("Lead = %v after %s, want ErrWorkNotEnded after %s", err, took, StopReserve)
			}
		case <-time.After(time.Hour):
			t.Fatal("Lead has not returned")
		}
		if holder := *l.lease().Spec.HolderIdentity; holder == "" {
			t.Error("the lease was released while work went on")
		}
		next := electionOf(t, l.client, newTestTerm("another pod"))
		if err := next.lead(t.Context(), func(context.Context) error { return errors.New("done") }); err == nil ||
			err.Error() != "done" {
			t.Errorf("lead = %v", err)
		}
		if waited := time.Since(stopped); waited < 15*time.Second || waited > time.Minute {
			t.Errorf("another replica leads after %s", waited)
		}
	})
}

func TestEndlessWorkDoesNotOutliveTheLease(t *testing.T) {
	for name, tc := range map[string]struct {
		stopped bool
		want    error
	}{"leading": {false, ErrLeaseLost}, "stopped": {true, ErrWorkNotEnded}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, deadlines(20*time.Second, 16*time.Second, 13*time.Second))
				defer close(l.end)
				if tc.stopped {
					l.stop()
				}
				l.delay.Store(int64(time.Second))
				if err := <-l.ended; !errors.Is(err, tc.want) || l.sinceRenewal() >= 20*time.Second {
					t.Errorf("Lead = %v, %s after the last renewal", err, l.sinceRenewal())
				}
			})
		})
	}
}

func TestAnotherHolderEndsWorkAtTheNextRenewal(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1.Lease){
		"another holder": func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To("another") },
		"another lease":  func(lease *coordinationv1.Lease) { lease.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, lasting)
				defer close(l.end)
				<-time.After(time.Second) // the first renewal, which knows no conflict, is over
				start := time.Now()
				l.conflict.Store(true)
				l.write(change)
				<-l.working.Done()
				if took := time.Since(start); took > lasting.RetryPeriod.Duration {
					t.Errorf("the work ended after %s", took)
				}
				if rest := l.term.remaining(); rest >= 0 {
					t.Errorf("Remaining = %s", rest)
				}
			})
		})
	}
}

func TestTermReturnsRemainingAndID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, lasting)
		if id := l.term.id; id != (controller.TermID{LeaseUID: "lease", Transitions: 8}) {
			t.Errorf("ID = %+v", id)
		}
		for range 10 {
			<-time.After(700 * time.Millisecond)
			if rest, want := l.term.remaining(), lasting.LeaseDuration.Duration-l.sinceRenewal(); rest != want {
				t.Errorf("Remaining = %s, want %s", rest, want)
			}
		}
		if id := l.term.id; id.Transitions != 8 {
			t.Errorf("ID = %+v after renewals", id)
		}
		l.stop()
		close(l.end)
		if err := <-l.ended; err != nil {
			t.Error(err)
		}
	})
}

// The monotonic clock stands still while the machine is suspended, and the lease expires meanwhile.
func TestTermEndsWhileTheMachineIsSuspended(t *testing.T) {
	term := newTestTerm("process")
	term.recordWrite(heldBy("process"), term.begin())
	if rest := term.remaining(); rest < 14*time.Second {
		t.Fatalf("Remaining = %s after a renewal", rest)
	}
	for name, test := range map[string]struct {
		suspended time.Duration
		led       bool
	}{
		"a suspended machine":         {time.Hour, false},
		"a wall clock that went back": {-time.Hour, true},
	} {
		term.renewedOn = term.renewed.Round(0).Add(-test.suspended)
		if rest := term.remaining(); rest > 0 != test.led || rest > 15*time.Second {
			t.Errorf("%s: Remaining = %s", name, rest)
		}
	}
}

func newTestTerm(identity string) *term {
	return newTerm(identity, lasting.LeaseDuration.Duration, lasting.RetryPeriod.Duration, &Connection{})
}

func electionOf(t *testing.T, client kubernetes.Interface, term *term) *election {
	t.Helper()
	e := &election{Election: Election{LeaderElectionConfiguration: lasting}, client: client, term: term,
		watchdog: leaderelection.NewLeaderHealthzAdaptor(time.Minute), released: make(chan struct{})}
	e.renewing, e.stopRenewing = context.WithCancel(t.Context())
	return e
}

// A pod that is created again under its name may run beside the old pod, whose node hangs.
func TestOnlyTheSamePodTakesAnUnexpiredLease(t *testing.T) {
	for name, tc := range map[string]struct {
		holder      string
		waits       bool
		transitions int32
	}{
		"restarted container":            {"pod-0_uid_exeunt", false, 3},
		"earlier pod of the name":        {"pod-0_earlier_exeunt", true, 4},
		"identity of an earlier version": {"pod-0_exeunt", true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				term := newTestTerm("pod-0_uid_exeunt")
				lease := heldBy(tc.holder)
				lease.UID, lease.Spec.LeaseTransitions = "lease", ptr.To[int32](3)
				e := electionOf(t, fake.NewClientset(lease), term)
				start := time.Now()
				err := e.lead(t.Context(), func(context.Context) error { return errors.New("done") })
				if err == nil || err.Error() != "done" {
					t.Errorf("lead = %v", err)
				}
				if waited := time.Since(start); !tc.waits && waited > 0 || tc.waits && waited < 15*time.Second {
					t.Errorf("leads after %s", waited)
				}
				if id := e.ID(); id != (controller.TermID{LeaseUID: "lease", Transitions: tc.transitions}) {
					t.Errorf("ID = %+v, want %d transitions", id, tc.transitions)
				}
			})
		})
	}
}
