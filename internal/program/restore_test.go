package program

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// store is an API server with one Lease, which versions it as etcd does. It can be restored from a backup.
type store struct {
	*testing.T
	client *fake.Clientset

	mu       sync.Mutex
	lease    *coordinationv1.Lease // nil if it does not exist
	revision int
	uids     int
	away     bool
	// lost: writes are executed, and their answers are lost.
	lost bool
	// reads and writes of the Lease that were answered.
	reads, writes int
	backup        *coordinationv1.Lease
	backedUpAt    int
}

func newStore(t *testing.T, lease *coordinationv1.Lease) *store {
	s := &store{T: t, client: fake.NewClientset(), revision: 1000}
	if lease != nil {
		s.set(lease)
	}
	s.client.PrependReactor("*", "leases", s.react)
	return s
}

var leaseResource = coordinationv1.Resource("leases")

func (s *store) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return true, nil, errors.New("connection refused")
	}
	switch action := action.(type) {
	case clienttesting.UpdateAction: // and of a creation
		sent := action.GetObject().(*coordinationv1.Lease)
		switch creates := action.GetVerb() == "create"; {
		case creates && s.lease != nil:
			return true, nil, apierrors.NewAlreadyExists(leaseResource, "program")
		case !creates && s.lease == nil:
			return true, nil, apierrors.NewNotFound(leaseResource, "program")
		case !creates && (sent.ResourceVersion != s.lease.ResourceVersion || sent.UID != s.lease.UID):
			return true, nil, apierrors.NewConflict(leaseResource, "program", errors.New("the object has been modified"))
		}
		s.writes++
		s.set(sent)
		if s.lost {
			return true, nil, context.DeadlineExceeded
		}
		return true, s.lease.DeepCopy(), nil
	case clienttesting.GetAction:
		if s.lease == nil {
			return true, nil, apierrors.NewNotFound(leaseResource, "program")
		}
		s.reads++
		return true, s.lease.DeepCopy(), nil
	}
	return false, nil, nil
}

// set stores the Lease as the next version.
func (s *store) set(lease *coordinationv1.Lease) {
	s.revision++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.revision)
	if s.lease.UID == "" {
		s.uids++
		s.lease.UID = types.UID(strconv.Itoa(s.uids))
	}
}

// do changes the store.
func (s *store) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *store) save() { s.backup, s.backedUpAt = s.lease.DeepCopy(), s.revision }

// restore brings the backup back, with the same revision or with a raised one.
func (s *store) restore(raised bool) {
	s.lease, s.revision = s.backup, s.backedUpAt
	if raised {
		s.revision += 1_000_000
	}
}

func (s *store) count() (reads, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.writes
}

// process is one that stands by or leads.
type process struct {
	connection *Connection
	term       controller.Term // set once it leads
	led        chan struct{}
	ended      chan error
	stop       context.CancelFunc
}

// start starts a process whose identity is that of a pod.
func (s *store) start(pod string) *process {
	ctx, stop := context.WithCancel(s.Context())
	p := &process{connection: &Connection{}, led: make(chan struct{}), ended: make(chan error, 1), stop: stop}
	renewing, stopRenewing := context.WithCancel(ctx)
	term := newTerm(pod, lasting.LeaseDuration.Duration, lasting.RetryPeriod.Duration, p.connection)
	e := &election{Election: Election{LeaderElectionConfiguration: lasting, Connection: p.connection}, client: s.client, term: term,
		watchdog: leaderelection.NewLeaderHealthzAdaptor(time.Minute), released: make(chan struct{}), renewing: renewing, stopRenewing: stopRenewing}
	go func() {
		defer stopRenewing()
		p.ended <- e.lead(ctx, func(leading context.Context) error {
			p.term = e
			close(p.led)
			<-leading.Done()
			return nil
		})
	}()
	return p
}

// end returns how the process ended.
func (s *store) end(p *process) error {
	s.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(5 * time.Minute):
		s.Error("the process goes on")
		p.stop()
		return <-p.ended
	}
}

// write is what the guard of a write says.
func (p *process) write() error {
	return p.term.(*election).confirm(context.Background())
}

// restores are the two kinds.
var restores = map[string]bool{"same revision": false, "raised revision": true}

func TestLeaderEndsWhenItsLeaseWentBack(t *testing.T) {
	for name, raised := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, nil)
				p := s.start("pod")
				<-p.led
				<-time.After(time.Minute)
				s.do(s.save)
				<-time.After(time.Minute)
				s.do(func() { s.away = true })
				<-time.After(3 * time.Second)
				s.do(func() { s.restore(raised); s.away = false })
				restored := time.Now()
				if err := s.end(p); !errors.Is(err, ErrRestored) {
					t.Errorf("Lead = %v, want ErrRestored", err)
				}
				if took := time.Since(restored); took > lasting.RetryPeriod.Duration+StopReserve {
					t.Errorf("the process ended %s after the restore", took)
				}
				if s.lease.ResourceVersion != s.backup.ResourceVersion {
					t.Error("the process wrote the restored Lease")
				}
			})
		})
	}
}

// The API server restarts and its etcd is restored between two renewals.
func TestRestoreBetweenTwoRenewalsStopsWrites(t *testing.T) {
	for name, raised := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, nil)
				p := s.start("pod")
				<-p.led
				<-time.After(time.Minute)
				s.do(s.save)
				<-time.After(time.Minute + time.Second)
				if err := p.write(); err != nil || !p.term.Leading() {
					t.Fatalf("a write before the restore: %v", err)
				}
				s.do(func() { s.restore(raised) })
				p.connection.interrupt()
				if p.term.Leading() {
					t.Error("data may be deleted after the restore")
				}
				if err := p.write(); !errors.Is(err, ErrRestored) {
					t.Errorf("a write after the restore: %v, want ErrRestored", err)
				}
				if err := s.end(p); !errors.Is(err, ErrRestored) {
					t.Errorf("Lead = %v, want ErrRestored", err)
				}
			})
		})
	}
}

// A process is frozen while the API server restarts, for less than its lease lasts, and wakes up in a worker.
func TestFrozenLeaderReadsItsLeaseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, nil)
		p := s.start("pod")
		<-p.led
		<-time.After(time.Minute)
		s.do(s.save)
		<-time.After(time.Minute)
		s.do(func() { s.restore(true) })
		term := p.term.(*election).term
		term.mu.Lock()
		term.confirmed = term.confirmed.Add(-3 * lasting.RetryPeriod.Duration) // as after five seconds without a renewal
		term.mu.Unlock()
		if err := p.write(); !errors.Is(err, ErrRestored) {
			t.Errorf("a write: %v, want ErrRestored", err)
		}
		_ = s.end(p)
	})
}

// The restarted process of the leader's pod takes the restored Lease before the other process reads it.
func TestStandbyKnowsOfRestoreFromNextLeader(t *testing.T) {
	for name, raised := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, nil)
				leader := s.start("pod-0")
				<-leader.led
				standby := s.start("pod-1")
				<-time.After(time.Minute)
				s.do(s.save)
				<-time.After(time.Minute)
				s.do(func() { s.away = true })
				if err := s.end(leader); !errors.Is(err, ErrLeaseLost) { // it cannot renew
					t.Errorf("Lead = %v, want ErrLeaseLost", err)
				}
				<-time.After(time.Minute)
				next := s.start("pod-0")
				s.do(func() { s.restore(raised); s.away = false })
				<-next.led
				<-time.After(time.Minute)
				select {
				case err := <-standby.ended:
					if !errors.Is(err, ErrRestored) {
						t.Errorf("the standby ended with %v, want ErrRestored", err)
					}
				default:
					t.Error("the standby of before the restore still runs")
				}
				if len(next.ended) > 0 {
					t.Errorf("the next leader ended: %v", <-next.ended)
				}
				next.stop()
				_ = s.end(next)
			})
		})
	}
}

// The Lease of the backup names the process that stands by now.
func TestStandbyDoesNotTakeItsOldLease(t *testing.T) {
	for name, raised := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, nil)
				first := s.start("pod-0")
				<-first.led
				s.do(s.save)
				second := s.start("pod-1")
				first.stop()
				if err := s.end(first); err != nil {
					t.Error(err)
				}
				<-second.led
				standby := s.start("pod-0")
				<-time.After(time.Minute)
				s.do(func() { s.restore(raised) })
				for _, p := range []*process{second, standby} {
					if err := s.end(p); !errors.Is(err, ErrRestored) {
						t.Errorf("Lead = %v, want ErrRestored", err)
					}
				}
			})
		})
	}
}

func TestStandbysSurviveManyTakeovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, nil)
		first := s.start("pod-0")
		<-first.led
		standby := s.start("pod-1")
		for range 5 {
			<-time.After(20 * time.Second)
			first.stop()
			if err := s.end(first); err != nil {
				t.Error(err)
			}
			first = s.start("pod-0") // whichever leads, none ends
			<-time.After(20 * time.Second)
			standby.stop()
			if err := s.end(standby); err != nil {
				t.Error(err)
			}
			standby = s.start("pod-1")
		}
		first.stop()
		standby.stop()
		if err := errors.Join(s.end(first), s.end(standby)); err != nil {
			t.Error(err)
		}
	})
}

// API servers restart one by one: each cuts the connection.
func TestRollingRestartHoldsWritesForOneReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, nil)
		p := s.start("pod")
		<-p.led
		<-time.After(time.Minute)
		for range 20 {
			s.do(func() { s.away = true })
			p.connection.interrupt()
			if err := p.write(); !errors.Is(err, ErrUnconfirmed) || p.term.Leading() {
				t.Errorf("a write while the API server is away: %v, want ErrUnconfirmed", err)
			}
			s.do(func() { s.away = false })
			reads, _ := s.count()
			if err := p.write(); err != nil || !p.term.Leading() {
				t.Errorf("a write after the restart: %v", err)
			}
			if after, _ := s.count(); after != reads+1 {
				t.Errorf("%d reads of the Lease, want 1", after-reads)
			}
			<-time.After(4 * time.Second)
		}
		p.stop()
		if err := s.end(p); err != nil {
			t.Error(err)
		}
	})
}

func TestSteadyConnectionNeedsNoReadOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, nil)
		p := s.start("pod")
		<-p.led
		<-time.After(time.Minute)
		reads, writes := s.count()
		for range 100 {
			if err := p.write(); err != nil || !p.term.Leading() {
				t.Fatal(err)
			}
			<-time.After(3 * time.Second)
		}
		if after, renewals := s.count(); after != reads || renewals-writes > 151 {
			t.Errorf("%d reads and %d renewals in five minutes", after-reads, renewals-writes)
		}
		p.stop()
		_ = s.end(p)
	})
}

// A renewal is executed and its answer lost: the next read finds a Lease that is newer than the last answer.
func TestLostAnswerToRenewalIsNoRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, nil)
		p := s.start("pod")
		<-p.led
		for range 10 {
			s.do(func() { s.lost = true })
			<-time.After(lasting.RetryPeriod.Duration * 3 / 2)
			s.do(func() { s.lost = false })
			<-time.After(lasting.RetryPeriod.Duration)
			if err := p.write(); err != nil {
				t.Fatal(err)
			}
		}
		p.stop()
		if err := s.end(p); err != nil {
			t.Error(err)
		}
	})
}

func TestEditsOfTheLease(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*coordinationv1.Lease)
		want error // nil: the process goes on
	}{
		"a label":               {func(l *coordinationv1.Lease) { l.Labels = map[string]string{"team": "storage"} }, nil},
		"an earlier renewal":    {func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = l.Spec.RenewTime.Add(-time.Minute) }, ErrRestored},
		"another holder":        {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("somebody") }, ErrLeaseLost},
		"a release":             {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") }, ErrLeaseLost},
		"another with its name": {func(l *coordinationv1.Lease) { l.UID = "" }, ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, nil)
				p := s.start("pod")
				<-p.led
				<-time.After(time.Minute)
				s.do(func() {
					lease := s.lease.DeepCopy()
					tc.edit(lease)
					s.set(lease)
				})
				<-time.After(time.Minute)
				if tc.want == nil {
					p.stop()
				}
				if err := s.end(p); !errors.Is(err, tc.want) {
					t.Errorf("Lead = %v, want %v", err, tc.want)
				}
			})
		})
	}
}

// "kubectl delete lease" hands the lease over: no process on standby ends by it.
func TestDeletedLeaseIsTakenByStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := heldBy("an administrator")
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](604800)
		s := newStore(t, lease)
		processes := []*process{s.start("pod-0"), s.start("pod-1")}
		<-time.After(time.Minute)
		s.do(func() { s.revision++; s.lease = nil })
		<-time.After(time.Minute)
		leaders := 0
		for _, p := range processes {
			select {
			case <-p.led:
				leaders++
			default:
			}
			p.stop()
			if err := s.end(p); err != nil {
				t.Error(err)
			}
		}
		if leaders != 1 {
			t.Errorf("%d processes led", leaders)
		}
	})
}

// The clock of a leader goes back by an hour: its renewals are older than the ones before.
func TestClockThatGoesBackIsNoRestore(t *testing.T) {
	t.Parallel()
	connection := &Connection{}
	term := newTerm("pod", time.Minute, time.Minute, connection)
	first := heldBy("pod")
	first.ResourceVersion, first.UID = "7", "lease"
	term.recordWrite(first, term.recordAttempt(first))
	later := first.DeepCopy()
	later.ResourceVersion, later.Spec.RenewTime.Time = "9", first.Spec.RenewTime.Add(-time.Hour)
	term.recordAttempt(later) // its answer is lost
	connection.interrupt()
	if err := term.observe(later, term.begin()); err != nil {
		t.Error(err)
	}
	if confirmed, err := term.isConfirmed(); !confirmed || err != nil {
		t.Errorf("confirmed %t, %v", confirmed, err)
	}
}

// A read that was sent before a renewal and is answered after it shows the Lease as it was.
func TestReadBesideRenewalIsNoRestore(t *testing.T) {
	t.Parallel()
	term := newTerm("pod", time.Minute, time.Minute, &Connection{})
	leases := make([]*coordinationv1.Lease, 4)
	for i := range leases {
		leases[i] = heldBy("pod")
		leases[i].ResourceVersion, leases[i].UID = strconv.Itoa(7+i), "lease"
		leases[i].Spec.RenewTime.Time = leases[0].Spec.RenewTime.Add(time.Duration(i) * time.Second)
	}
	term.recordWrite(leases[0], term.recordAttempt(leases[0]))
	read := term.begin()
	for _, lease := range leases[1:] {
		term.recordWrite(lease, term.recordAttempt(lease))
	}
	for _, lease := range leases[:3] {
		if err := term.observe(lease, read); err != nil {
			t.Errorf("version %s: %v", lease.ResourceVersion, err)
		}
	}
	if err := term.observe(leases[2], term.begin()); !errors.Is(err, ErrRestored) {
		t.Errorf("a read after the renewals: %v, want ErrRestored", err)
	}
}

// The backup is younger than the last read of a standby, whose watch has shown later renewals.
func TestWatchOfTheLeaseShowsRestores(t *testing.T) {
	t.Parallel()
	version := func(version, acquiredFrom string) *coordinationv1.Lease {
		lease := heldBy("another pod")
		lease.UID, lease.ResourceVersion, lease.Annotations = "lease", version, map[string]string{AcquiredFrom: acquiredFrom}
		return lease
	}
	for name, tc := range map[string]struct {
		shown, next *coordinationv1.Lease
		want        error
	}{
		"same revision":          {version("900", "100"), version("800", "100"), ErrRestored},
		"raised revision":        {version("900", "100"), version("5000", "800"), ErrRestored},
		"takeover":               {version("900", "100"), version("950", "900"), nil},
		"watch that is late":     {version("600", "50"), version("770", "100"), nil},
		"watch of another store": {version("1000", "700"), version("1001", "700"), ErrRestored},
	} {
		t.Run(name, func(t *testing.T) {
			term := newTestTerm("pod")
			if err := term.observe(version("750", "100"), term.begin()); err != nil {
				t.Fatal(err)
			}
			overtaken := term.begin()
			term.see(tc.shown)
			if err := term.observe(version("760", "100"), overtaken); err != nil && term.lostBy() == nil {
				t.Errorf("a read beside the watch: %v", err)
			}
			if err := term.observe(tc.next, term.begin()); !errors.Is(err, tc.want) {
				t.Errorf("the next read: %v, want %v", err, tc.want)
			}
		})
	}
}
