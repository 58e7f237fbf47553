package garbagecollector

import (
	"net/http"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// aggregated answers that another API server serves the group of widgets.
func (s *apiServer) aggregated() {
	s.answer(definitionOfWidgets, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"customresourcedefinitions", "widgets.g"))
	s.answer(serviceOfWidgets, http.StatusOK,
		map[string]any{"spec": map[string]any{"service": map[string]any{"name": "g"}}})
}

// discoverFor has discoveries follow each other for the time.
func (c *Collector) discoverFor(t *testing.T, clock *clocktesting.FakeClock, period time.Duration) {
	t.Helper()
	for end := clock.Now().Add(period); clock.Now().Before(end); clock.Step(discoveryPeriod) {
		if err := c.discovery.discover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// isWatched reports whether the collector watches widgets.
func (c *Collector) isWatched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches.monitors[widgetKind] != nil
}

// withdrawing returns a collector that watches widgets, of a group whose API server is about to drop them.
func withdrawing(t *testing.T, clock *clocktesting.FakeClock) (*Collector, *apiServer, *fakeDiscovery) {
	t.Helper()
	s, d := newAPIServer(t), &fakeDiscovery{}
	s.aggregated()
	d.serveWidgets("v1", true)
	c := connected(t, s, Config{Discovery: d, Clock: clock})
	c.discoverFor(t, clock, discoveryPeriod)
	return c, s, d
}

// An aggregated API server may serve a kind no longer that it served before. Its APIService stays.
func TestKindThatItsServerDroppedIsGone(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, _, d := withdrawing(t, clock)
	c.observe(terminating(configMap("owner", "1"), metav1.FinalizerOrphanDependents))
	c.change(func(g *graph.Graph) {
		dependent := configMap("dependent", "1", "owner")
		g.Observe(g.Kind(widgetKind), &dependent)
	})
	d.lists[0].APIResources = nil
	c.discoverFor(t, clock, withdrawnAfter)
	if !c.isWatched() {
		t.Fatal("the kind was dropped early")
	}
	c.discoverFor(t, clock, discoveryPeriod)
	if c.isWatched() {
		t.Error("the kind is still watched")
	}
	if owner, _ := c.graph.WaitingOwner("owner"); owner.Remaining != 0 {
		t.Errorf("the owner waits for %d dependents", owner.Remaining)
	}
}

func TestKindWhosePathAnswersIsKept(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		object any
	}{
		"with a list": {http.StatusOK,
			&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
				Kind: "PartialObjectMetadataList"}}},
		"that another object is not found": {http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound, "namespaces", "ns")},
		"that it is overloaded": {http.StatusServiceUnavailable,
			failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "widgets", "")},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			c, s, d := withdrawing(t, clock)
			s.answer("GET /apis/g/v1/widgets", answer.status, answer.object)
			d.lists[0].APIResources = nil
			c.discoverFor(t, clock, withdrawnAfter+discoveryPeriod)
			if !c.isWatched() {
				t.Error("the kind was dropped")
			}
		})
	}
}

// A definition may serve no version for a while. Its objects stay in storage.
func TestKindOfDefinitionThatServesNoVersionIsKept(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, s, d := withdrawing(t, clock)
	s.define(apiextensionsv1.NamespaceScoped)
	d.lists[0].APIResources = nil
	c.discoverFor(t, clock, withdrawnAfter+discoveryPeriod)
	if !c.isWatched() {
		t.Error("the kind was dropped")
	}
}

func TestKindThatDiscoveryLacksNowAndThenIsKept(t *testing.T) {
	for name, interrupt := range map[string]func(*fakeDiscovery){
		"discovery fails": func(d *fakeDiscovery) { d.err = http.ErrServerClosed },
		"its group fails": func(d *fakeDiscovery) {
			d.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "g",
				Version: "v1"}: http.ErrServerClosed}}
		},
		"it is served": func(d *fakeDiscovery) { d.serveWidgets("v1", true) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			c, _, d := withdrawing(t, clock)
			for range 2 {
				d.err, d.lists[0].APIResources = nil, nil
				c.discoverFor(t, clock, withdrawnAfter)
				interrupt(d)
				_ = c.discovery.discover(t.Context())
			}
			if !c.isWatched() {
				t.Error("the kind was dropped")
			}
		})
	}
}

// The API servers are being upgraded, and the collector has come to one of the former version.
func TestKindOfKubernetesIsKeptDuringAnUpgrade(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := connected(t, newAPIServer(t), Config{Clock: clock}) // which answers all paths with a 404
	c.discovery.gone.setWithdrawn([]*graph.Kind{configMaps})
	for _, gone := range []bool{false, true} {
		clock.Step(droppedAfter - 1)
		if got, err := c.discovery.gone.isWithdrawn(t.Context(), configMaps); got != gone || err != nil {
			t.Errorf("after %s: isWithdrawn = %v, %v", clock.Since(c.discovery.gone.withdrawn[configMaps.GroupKind()]), got, err)
		}
	}
}
