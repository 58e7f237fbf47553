package garbagecollector

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestSlowKindKeepsOneWorker(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := New(Config{Clock: clock})
	taking := func(took time.Duration, during func()) func() (time.Time, error) {
		return func() (time.Time, error) {
			began := clock.Now()
			during()
			clock.Step(took)
			return began, nil
		}
	}
	nothing := func() {}
	quick := func() {
		if err := c.live.slow.limit(configMaps, taking(0, nothing)); err != nil {
			t.Errorf("a kind that is not slow: %v", err)
		}
	}
	refused := func() {
		if err := c.live.slow.limit(configMaps, taking(0, nothing)); !errors.Is(err, errSlow) {
			t.Errorf("while a slow kind is read: %v", err)
		}
	}
	for _, read := range []func() (time.Time, error){taking(slowAnswer, quick), taking(slowAnswer, refused),
		taking(0, refused), taking(0, quick)} {
		if err := c.live.slow.limit(configMaps, read); err != nil {
			t.Error(err)
		}
	}
}

// A request that began before its kind was slow ends while another one is under way.
func TestEarlierRequestOfSlowKindAdmitsNoOther(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := New(Config{Clock: clock})
	began := clock.Now()
	limit := func(during func()) error {
		return c.live.slow.limit(configMaps, func() (time.Time, error) {
			during()
			return began, nil
		})
	}
	answered, sent := make(chan struct{}), make(chan struct{})
	earlier := make(chan error)
	go func() { earlier <- limit(func() { close(sent); <-answered }) }()
	<-sent
	clock.Step(slowAnswer)
	if err := limit(func() {}); err != nil {
		t.Fatal(err)
	}
	err := limit(func() {
		close(answered)
		if err := <-earlier; err != nil {
			t.Error(err)
		}
		if err := limit(func() {}); !errors.Is(err, errSlow) {
			t.Errorf("while a slow kind is read: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// An API server that does not answer the deletions of one kind keeps one worker.
func TestSlowDeletionsKeepOneWorker(t *testing.T) {
	s := newAPIServer(t)
	s.lack("owner")
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	ended := make(chan struct{})
	defer close(ended)
	var sent atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	hold := func(w http.ResponseWriter, _ *http.Request) {
		if sent.Add(1) > 2 {
			<-ended
			return
		}
		both.Done()
		both.Wait()
		clock.Step(slowAnswer)
		respond(w, http.StatusInternalServerError, failure(http.StatusInternalServerError, metav1.StatusReasonInternalError,
			"widgets", ""))
	}
	widgets := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Widget"},
		Resource: "widgets", Namespaced: true}
	c := connected(t, s, Config{Clock: clock})
	c.watches.definitions["widgets.g"] = "definition"
	c.working = true
	c.change(func(g *graph.Graph) {
		g.Serve(widgets)
		for i := range 40 {
			object := configMap("widget"+strconv.Itoa(i), "1", "owner")
			s.handle("DELETE /apis/g/v1/namespaces/ns/widgets/"+object.Name, hold)
			g.Observe(widgets, &object)
		}
		g.Deleted("owner", graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: "owner"})
	})
	c.observe(configMap("dependent", "1", "owner"))
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
	defer c.worker.queue.ShutDown()
	for range 2 {
		go c.worker.run(t.Context())
	}
	eventually(t, "delete the ConfigMap", func() bool { return s.count("DELETE "+dependentPath) > 0 })
}

// A write that waits for another one of its slow kind costs nothing.
func TestDeletionOfSlowKindTakesNoTokenAndReadsNothing(t *testing.T) {
	s := newAPIServer(t)
	limiter := &countingLimiter{}
	widgets := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "aggregated", Version: "v1", Kind: "Widget"},
		Resource: "widgets", Namespaced: true}
	c := connected(t, s, Config{Limiter: limiter})
	c.writer.slow.sending[widgets.GroupResource()] = true // one is under way
	object := configMap("widget", "1", "owner")
	c.change(func(g *graph.Graph) {
		g.Serve(widgets)
		g.Observe(widgets, &object)
		g.Deleted("owner", graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: "owner"})
	})
	if err := c.worker.reconcile(t.Context(), object.UID); !errors.Is(err, errSlow) {
		t.Errorf("reconcile = %v", err)
	}
	if limiter.taken > 0 || len(s.requests) > 0 {
		t.Errorf("%d tokens, requests %q", limiter.taken, s.requests)
	}
}

// countingLimiter counts the tokens that are taken.
type countingLimiter struct {
	flowcontrol.RateLimiter
	taken int
}

func (l *countingLimiter) Wait(context.Context) error {
	l.taken++
	return nil
}

// The next request of a slow kind is not sent: nothing is known of how long an answer takes now.
func TestUnsentRequestLeavesKindSlow(t *testing.T) {
	c := New(Config{Clock: clock.RealClock{}})
	c.writer.slow.sending[configMaps.GroupResource()] = false
	for range 2 {
		if err := c.writer.slow.limit(configMaps, func() (time.Time, error) { return time.Time{}, nil }); err != nil {
			t.Fatal(err)
		}
		if sending, slow := c.writer.slow.sending[configMaps.GroupResource()]; sending || !slow {
			t.Errorf("sending %v, slow %v", sending, slow)
		}
	}
}
