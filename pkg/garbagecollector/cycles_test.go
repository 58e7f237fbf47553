package garbagecollector

import (
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
)

// cycle fills the graph with two owners that block each other, and has passed the barrier. A write is answered so.
func cycle(t *testing.T, config Config, status int, answer func(name string) any) (*Collector, *apiServer) {
	t.Helper()
	s := newAPIServer(t)
	one := terminating(configMap("one", "1", "two"), metav1.FinalizerDeleteDependents)
	two := terminating(configMap("two", "2", "one"), metav1.FinalizerDeleteDependents)
	s.answer("GET "+configMapPath+"one", http.StatusOK, partial(one))
	s.answer("GET "+configMapPath+"two", http.StatusOK, partial(two))
	for _, name := range []string{"one", "two"} {
		s.answer("PATCH "+configMapPath+name, status, answer(name))
	}
	c := connected(t, s, config)
	c.observe(one, two)
	pass(c, "one")
	pass(c, "two")
	return c, s
}

// refusedWith returns a function that returns the refusal of a write of the ConfigMap.
func refusedWith(code int, reason metav1.StatusReason) func(name string) any {
	return func(name string) any { return failure(code, reason, "configmaps", name) }
}

// Only a member that was released is called so.
func TestNoEventAboutMemberThatChanged(t *testing.T) {
	for status, want := range map[int]int{http.StatusOK: 2, http.StatusConflict: 0} {
		recorder := record.NewFakeRecorder(10)
		answer := refusedWith(http.StatusConflict, metav1.StatusReasonConflict)
		if status == http.StatusOK {
			answer = func(name string) any { return partial(terminating(configMap(name, "9"), "example.com/held")) }
		}
		c, _ := cycle(t, Config{Recorder: recorder}, status, answer)
		c.cycles.releaseFound(t.Context(), newCycleDelays())
		if got := len(recorder.Events); got != want {
			t.Errorf("%d events after answers %d, want %d", got, status, want)
		}
	}
}

// A write that is always refused is not repeated four times a second.
func TestRefusedReleaseIsDelayedLongerEachTime(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c, s := cycle(t, Config{Clock: clock}, http.StatusForbidden,
		refusedWith(http.StatusForbidden, metav1.StatusReasonForbidden))
	delays := newCycleDelays()
	for range 240 {
		c.cycles.releaseFound(t.Context(), delays)
		clock.Step(cyclePause)
	}
	if got := s.count("GET " + configMapPath + "one"); got < 5 || got > 10 {
		t.Errorf("%d attempts within a minute", got)
	}
	if next, failed := delays.next(); !failed || next.Sub(clock.Now()) > maxPause {
		t.Errorf("the next attempt is at %v", next)
	}
}

// A dependent may come while a rate limit delays the release of a cycle, or of an owner without dependents.
func TestDependentThatCameDuringDelayIsAwaited(t *testing.T) {
	for finalizer, owners := range map[string][]types.UID{metav1.FinalizerDeleteDependents: {"one"},
		metav1.FinalizerOrphanDependents: {"one"}} {
		s := newAPIServer(t)
		s.answer("PATCH "+configMapPath+"one", http.StatusOK, partial(configMap("one", "9")))
		var c *Collector
		arrive := func() { c.observe(configMap("late", "5", "one")) }
		c = connected(t, s, Config{Limiter: hookLimiter{admit: arrive}})
		c.observe(terminating(configMap("one", "1"), finalizer))
		pass(c, "one")
		for _, owner := range owners {
			if err := c.worker.reconcile(t.Context(), owner); err != nil {
				t.Error(err)
			}
		}
		if s.count("PATCH "+configMapPath+"one") > 0 {
			t.Errorf("%s is removed before the dependent that came is gone", finalizer)
		}
	}
	c, s := cycle(t, Config{}, http.StatusOK, func(name string) any { return partial(configMap(name, "9")) })
	c.writer.limiter = hookLimiter{admit: func() { c.observe(configMap("late", "5", "one", "two")) }}
	c.cycles.releaseFound(t.Context(), newCycleDelays())
	if s.count("PATCH "+configMapPath+"one")+s.count("PATCH "+configMapPath+"two") > 0 {
		t.Error("a member is released before the dependent that came is gone")
	}
}

// A webhook may answer any number of seconds.
func TestObjectIsRetriedWithinAMinute(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{36000: maxPause, 5: 5 * time.Second, 0: maxRetry} {
		clock := clocktesting.NewFakeClock(time.Unix(0, 0))
		c := New(Config{Clock: clock})
		refused := failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "configmaps", "one")
		refused.Details.RetryAfterSeconds = seconds
		c.worker.finish(t.Context(), "one", &apierrors.StatusError{ErrStatus: *refused})
		eventually(t, "the object is delayed", clock.HasWaiters)
		clock.Step(want + time.Millisecond)
		eventually(t, "the object is due", func() bool { return c.worker.queue.Len() == 1 })
		c.worker.queue.ShutDown()
	}
	header := http.Header{"Retry-After": {"86400"}}
	if boundRetryAfter(header); header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After: %s", header.Get("Retry-After"))
	}
}
