package machine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// script is a provider whose answers the test sets.
type script struct {
	mu    sync.Mutex
	state instances.State
	err   error
	takes time.Duration
	// calls are the verbs, times when they came.
	calls []string
	times []time.Time
}

func (s *script) call(ctx context.Context, verb string) (instances.State, error) {
	s.mu.Lock()
	s.calls, s.times = append(s.calls, verb), append(s.times, time.Now())
	state, err, takes := s.state, s.err, s.takes
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return state, err
}

func (s *script) Get(ctx context.Context, _ instances.Instance) (instances.State, error) {
	return s.call(ctx, "get")
}

func (s *script) Stop(ctx context.Context, _ instances.Instance) (instances.State, error) {
	return s.call(ctx, "stop")
}

func (s *script) Delete(ctx context.Context, _ instances.Instance) (instances.State, error) {
	return s.call(ctx, "delete")
}

func (s *script) set(state instances.State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.err = state, err
}

// delay sets how long each call takes from now on.
func (s *script) delay(takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = takes
}

// called returns the verbs of all calls, asked when they came.
func (s *script) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *script) asked() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// run runs a test in virtual time with a machine that was asked once.
func run(t *testing.T, state instances.State, seen bool, test func(*testing.T, *script, *Machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{state: state, takes: 10 * time.Millisecond}
		m := New(t.Context(), s, instances.Instance{Node: "n"}, seen, func() {})
		defer m.End()
		<-time.After(20 * time.Millisecond)
		test(t, s, m)
	})
}

func TestTwoAnswersOffAreTwoSecondsApart(t *testing.T) {
	run(t, instances.Off, false, func(t *testing.T, s *script, m *Machine) {
		if v := m.View(); v.Off != 1 {
			t.Fatalf("after one answer: %+v", v)
		}
		<-time.After(1900 * time.Millisecond)
		if v := m.View(); v.Off != 1 {
			t.Errorf("after 1.9 s: %+v", v)
		}
		<-time.After(200 * time.Millisecond)
		if v := m.View(); v.Off != 2 || s.asked()[1].Sub(s.asked()[0]) < 2*time.Second {
			t.Errorf("after 2.1 s: %+v, asked at %v", v, s.asked())
		}
	})
}

func TestRunningBetweenAnswersOffBeginsAnew(t *testing.T) {
	run(t, instances.Off, false, func(t *testing.T, s *script, m *Machine) {
		s.set(instances.Running, nil)
		<-time.After(3 * time.Second)
		s.set(instances.Off, nil)
		<-time.After(2 * time.Second)
		if v := m.View(); v.Off > 1 {
			t.Errorf("%+v", v)
		}
	})
}

func TestGoneCountsOfMachineThatWasSeen(t *testing.T) {
	run(t, instances.Gone, false, func(t *testing.T, _ *script, m *Machine) {
		<-time.After(time.Minute)
		if v := m.View(); v.Off != 0 || v.Seen {
			t.Errorf("#52 never seen: %+v", v)
		}
	})
	run(t, instances.Gone, true, func(t *testing.T, _ *script, m *Machine) {
		<-time.After(3 * time.Second)
		if v := m.View(); v.Off != 2 {
			t.Errorf("seen by an earlier process: %+v", v)
		}
	})
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.set(instances.Gone, nil)
		<-time.After(5 * time.Second)
		if v := m.View(); v.Off != 2 {
			t.Errorf("seen running: %+v", v)
		}
	})
}

func TestFailedCallsBackOff(t *testing.T) {
	run(t, "", false, func(t *testing.T, s *script, m *Machine) {
		s.set("", errors.New("throttled"))
		<-time.After(2 * time.Minute)
		var pauses []time.Duration
		for i := range s.asked()[1:] {
			pauses = append(pauses, s.asked()[i+1].Sub(s.asked()[i]).Round(time.Second))
		}
		want := []time.Duration{1, 2, 4, 8, 16, 30, 30}
		for i := range want {
			want[i] *= time.Second
		}
		if len(pauses) < 7 || !slices.Equal(pauses[:7], want) || m.View().Err == nil {
			t.Errorf("pauses %v, want %v; %+v", pauses, want, m.View())
		}
	})
}

func TestProviderNamesThePauseWithinLimits(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, _ *Machine) {
		s.set("", &instances.Error{Message: "later", RetryAfter: time.Hour})
		<-time.After(2 * time.Minute)
		for i := range s.asked()[2:] {
			if pause := s.asked()[i+2].Sub(s.asked()[i+1]).Round(time.Second); pause != 30*time.Second {
				t.Errorf("a pause of %v", pause)
			}
		}
	})
}

func TestFailedDeleteDoesNotPauseStop(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.set("", &instances.Error{Message: "later", RetryAfter: time.Hour})
		m.Delete()
		<-time.After(time.Second)
		if !m.Stop() {
			t.Error("Stop was not called")
		}
	})
}

func TestStopIsCalledOnceAtATime(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.delay(10 * time.Second)
		if !m.Stop() || m.Stop() {
			t.Error("a second Stop while the first runs")
		}
		<-time.After(10500 * time.Millisecond)
		if m.Stop() {
			t.Error("a second Stop half a second after the first")
		}
		<-time.After(time.Second)
		if !m.Stop() {
			t.Error("no second Stop of a machine that runs")
		}
	})
}

func TestStopDoesNotWaitForGet(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.delay(time.Hour)
		<-time.After(2 * time.Minute) // a Get hangs
		if !m.Stop() {
			t.Error("Stop was not called")
		}
		<-time.After(time.Second)
		if !slices.Contains(s.called(), "stop") {
			t.Errorf("calls %v", s.called())
		}
	})
}

func TestUnsupportedStopIsNotCalledAgain(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.set("", &instances.Error{Message: "no", Unsupported: true})
		m.Stop()
		<-time.After(time.Minute)
		if m.Stop() || !m.View().NoStop {
			t.Errorf("%+v", m.View())
		}
	})
}

func TestDeletedOnceProviderTookTheRequest(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.set("", errors.New("throttled"))
		m.Delete()
		<-time.After(time.Second / 2)
		if m.View().Deleted {
			t.Error("a failed Delete counts")
		}
		s.set(instances.Stopping, nil)
		<-time.After(time.Minute)
		m.Delete()
		<-time.After(time.Second / 2)
		if !m.View().Deleted {
			t.Errorf("%+v, calls %v", m.View(), s.called())
		}
	})
}

func TestAnswersBeforeResetProveNothing(t *testing.T) {
	run(t, instances.Off, true, func(t *testing.T, s *script, m *Machine) {
		s.delay(5 * time.Second)
		<-time.After(4 * time.Second) // the second Get is in flight
		m.Reset()
		<-time.After(4 * time.Second)
		if v := m.View(); v.Off != 0 || v.State != "" {
			t.Errorf("%+v", v)
		}
		<-time.After(time.Minute)
		if v := m.View(); v.Off != 2 {
			t.Errorf("%+v", v)
		}
	})
}

func TestEndedMachineIsNotAsked(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		m.End()
		asked := len(s.called())
		<-time.After(time.Hour)
		if len(s.called()) != asked || m.Stop() {
			t.Errorf("calls %v", s.called())
		}
	})
}

func TestDeletedMachineIsGoneAtOnce(t *testing.T) {
	run(t, instances.Running, false, func(t *testing.T, s *script, m *Machine) {
		s.set(instances.Gone, nil)
		m.Delete()
		<-time.After(time.Second / 2)
		if v := m.View(); v.State != instances.Gone || !v.Deleted {
			t.Errorf("%+v, calls %v", v, s.called())
		}
	})
}
