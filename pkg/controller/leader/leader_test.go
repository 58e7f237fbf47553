package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

var lasting = componentconfig.LeaderElectionConfiguration{
	LeaderElect: true, ResourceLock: "leases", ResourceName: "program", ResourceNamespace: "ns",
	LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
	RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
	RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
}

func heldBy(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "program"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15),
			AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
}

// standby is a process that waits for a lease of another holder.
type standby struct {
	t      *testing.T
	client *fake.Clientset
	led    chan time.Time // when it began to lead
	// contested makes writes of the lease conflict: the fake client detects no conflicts.
	contested atomic.Bool
	// unanswered: the process is stopped before the answer to its write of the lease.
	unanswered atomic.Bool
	stop       context.CancelFunc
	ended      chan error
}

func standBy(t *testing.T, watched bool) *standby {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &standby{t: t, client: fake.NewClientset(heldBy("another holder")), led: make(chan time.Time, 1), stop: stop,
		ended: make(chan error, 1)}
	s.client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		lease, _ := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if s.unanswered.Load() && holder != "another holder" && holder != "" {
			stop()
			return true, nil, errors.Join(context.Canceled, s.client.Tracker().
				Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, "ns"))
		}
		if holder == "another holder" || !s.contested.Load() {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "program", nil)
	})
	go func() {
		watchdog := leaderelection.NewLeaderHealthzAdaptor(time.Minute)
		s.ended <- Lead(ctx, Election{LeaderElectionConfiguration: lasting, Watched: watched}, s.client, watchdog,
			func(leading context.Context, _ controller.Term) error {
				s.led <- time.Now()
				<-leading.Done()
				return nil
			})
	}()
	return s
}

// setHolder sets the holder of the lease, "" for none.
func (s *standby) setHolder(holder string) {
	s.t.Helper()
	if _, err := s.client.CoordinationV1().Leases("ns").Update(s.t.Context(), heldBy(holder),
		metav1.UpdateOptions{}); err != nil {
		s.t.Error(err)
	}
}

func (s *standby) holder() string {
	s.t.Helper()
	lease, err := s.client.CoordinationV1().Leases("ns").Get(context.Background(), "program", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

func TestWatchingStandbyAcquiresReleasedLeaseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standBy(t, true)
		for range 5 { // the holder is alive
			<-time.After(3 * time.Second)
			s.setHolder("another holder")
		}
		select {
		case <-s.led:
			t.Fatal("the standby leads beside the holder of the lease")
		default:
		}
		released := time.Now()
		s.setHolder("")
		if wait := (<-s.led).Sub(released); wait > 100*time.Millisecond {
			t.Errorf("the standby led %s after the lease was released", wait)
		}
		if s.holder() == "" {
			t.Error("the standby leads without the lease")
		}
		s.stop()
		if err := <-s.ended; err != nil || s.holder() != "" {
			t.Errorf("Lead = %v, and the lease is held by %q", err, s.holder())
		}
	})
}

func TestUnwatchedLeaseIsAcquiredByTheNextRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standBy(t, false)
		<-time.After(3 * time.Second)
		released := time.Now()
		s.setHolder("")
		if wait := (<-s.led).Sub(released); wait > 5*time.Second {
			t.Errorf("the standby led %s after the lease was released", wait)
		}
		s.stop()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestExpiredLeaseIsAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := standBy(t, true)
		if wait := (<-s.led).Sub(start); wait < 15*time.Second || wait > 20*time.Second {
			t.Errorf("the standby led %s after the last renewal, want 15 s and little more", wait)
		}
		s.stop()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestLeaderStopsWhenLeaseIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standBy(t, true)
		s.setHolder("")
		<-s.led
		s.contested.Store(true)
		s.setHolder("another holder")
		if err := <-s.ended; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("Lead = %v, want ErrLeaseLost", err)
		}
	})
}

func TestStoppedStandbyNeverLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standBy(t, true)
		<-time.After(time.Second)
		s.stop()
		if err := <-s.ended; err != nil || len(s.led) > 0 || s.holder() != "another holder" {
			t.Errorf("Lead = %v, led %d times, and the lease is held by %q", err, len(s.led), s.holder())
		}
	})
}

// The API server executes the write by which a standby acquires the lease, and the standby is stopped before the answer.
func TestStandbyStoppedWhileItAcquiresReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standBy(t, true)
		s.unanswered.Store(true)
		<-time.After(time.Second)
		s.setHolder("")
		if err := <-s.ended; err != nil || len(s.led) > 0 || s.holder() != "" {
			t.Errorf("Lead = %v, led %d times, and the lease is held by %q", err, len(s.led), s.holder())
		}
	})
}
