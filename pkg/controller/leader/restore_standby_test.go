package leader

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// The restarted process of the leader's pod takes the restored Lease before the other process reads it.
func TestStandbyKnowsOfRestoreFromNextLeader(t *testing.T) {
	afterEachRestore(t, func(t *testing.T, raised bool) {
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
}

// The Lease of the backup names the process that stands by now.
func TestStandbyDoesNotTakeItsOldLease(t *testing.T) {
	afterEachRestore(t, func(t *testing.T, raised bool) {
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
