package leader

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// restores are the two kinds.
var restores = map[string]bool{"same revision": false, "raised revision": true}

// afterEachRestore runs the test for each kind of restore, with the time of a bubble.
func afterEachRestore(t *testing.T, test func(t *testing.T, raised bool)) {
	t.Helper()
	for name, raised := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, raised) })
		})
	}
}

// startLeader starts a process on a new store, which has led for a minute when startLeader returns.
func startLeader(t *testing.T) (*store, *process) {
	t.Helper()
	s := newStore(t, nil)
	p := s.start("pod")
	<-p.led
	<-time.After(time.Minute)
	return s, p
}

func TestLeaderEndsWhenItsLeaseWentBack(t *testing.T) {
	afterEachRestore(t, func(t *testing.T, raised bool) {
		s, p := startLeader(t)
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
}

// The API server restarts and its etcd is restored between two renewals.
func TestRestoreBetweenTwoRenewalsStopsWrites(t *testing.T) {
	afterEachRestore(t, func(t *testing.T, raised bool) {
		s, p := startLeader(t)
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
}

// A process is frozen while the API server restarts, for less than its lease lasts, and wakes up in a worker.
func TestFrozenLeaderReadsItsLeaseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := startLeader(t)
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

// API servers restart one by one: each cuts the connection.
func TestRollingRestartHoldsWritesForOneReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := startLeader(t)
		<-time.After(time.Second) // between two renewals, which read the Lease, too
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
		s, p := startLeader(t)
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
				s, p := startLeader(t)
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
