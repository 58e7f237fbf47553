package garbagecollector

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const sealLimit = 10 * time.Second

// begun is a barrier that has just begun, and reads definitions only.
type begun struct {
	*reads
	collector *Collector
}

func sealing(t *testing.T, s *apiServer, d *fakeDiscovery) (begun, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := connected(t, s, Config{Clock: clock, Discovery: d, UnreadableAfter: sealLimit})
	r := c.barriers.newReads(barrier.Begin[*graph.Kind](sealLimit), "")
	r.defining = []*graph.Kind{definitions}
	r.run.Add(definitions)
	r.run.Vouch(definitions)
	r.run.Next(clock.Now())
	return begun{r, c}, clock
}

// seal looks for new kinds, after the definitions were seen or not, and returns what the run has come to. The API
// server answers checks.
func (r begun) seal(t *testing.T) barrier.Result {
	t.Helper()
	r.collector.barriers.sealAfter(t.Context(), r.reads)
	return r.answerCheck()
}

func (r *reads) answerCheck() barrier.Result {
	requests, _ := r.run.Next(r.clock.Now())
	for _, request := range requests {
		if request == barrier.Check {
			r.run.Checked(true, r.clock.Now())
		}
	}
	result, _ := r.run.Result(r.clock.Now())
	return result
}

// An API server that is overloaded for longer than kinds may be unreadable says nothing about the definitions.
func TestKindOfDefinitionThatIsReadLateIsAwaited(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.NamespaceScoped)
	s.listWidgets(make(chan struct{}))
	r, clock := sealing(t, s, &fakeDiscovery{})
	r.run.Postponed(definitions, clock.Now().Add(15*time.Second))
	clock.Step(sealLimit)
	r.seal(t)
	clock.Step(5 * time.Second)
	r.run.Seen(definitions)
	r.watches.definitions["widgets.g"] = "widgets"
	if result := r.seal(t); result != barrier.Running {
		t.Errorf("the barrier has %v without widgets", result)
	}
}

// A definition that can be read again has its kind read, although the barrier may pass without.
func TestKindOfDefinitionThatFailedIsAwaitedOnceRead(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.NamespaceScoped)
	s.listWidgets(make(chan struct{}))
	r, clock := sealing(t, s, &fakeDiscovery{})
	r.run.Failed(definitions, clock.Now())
	r.run.Add(configMaps)
	r.run.Vouch(configMaps)
	r.run.Seen(configMaps)
	r.seal(t)
	clock.Step(sealLimit)
	if result := r.seal(t); result != barrier.PassedWithout {
		t.Errorf("the barrier has %v, although definitions cannot be read", result)
	}
	clock.Step(barrier.RetryTime)
	r.run.Seen(definitions)
	r.watches.definitions["widgets.g"] = "widgets"
	if result := r.seal(t); result != barrier.Running {
		t.Errorf("the barrier has %v without widgets", result)
	}
}

func TestBarrierPassesWithoutKindsThatCannotBeDiscovered(t *testing.T) {
	r, clock := sealing(t, newAPIServer(t), &fakeDiscovery{err: errors.New("away")})
	r.run.Seen(definitions)
	r.watches.outdated = true
	if result := r.seal(t); result != barrier.Running {
		t.Errorf("the barrier has %v at once", result)
	}
	clock.Step(sealLimit)
	if result := r.seal(t); result != barrier.PassedWithout {
		t.Errorf("the barrier has %v", result)
	}
	if names := r.collector.barriers.describeUnseen(nil); !slices.Equal(names, []string{undiscovered}) {
		t.Errorf("passed without %v", names)
	}
}

// away is the discovery of an API server some of whose groups are served by others that do not answer.
func away(groups ...string) *fakeDiscovery {
	d := &fakeDiscovery{}
	d.serveWidgets("v1", true)
	failed := map[schema.GroupVersion]error{}
	for _, group := range groups {
		failed[schema.GroupVersion{Group: group, Version: "v1"}] = errors.New("away")
	}
	d.err = &discovery.ErrGroupDiscoveryFailed{Groups: failed}
	return d
}

// A program that starts while an aggregated API is away knows none of its kinds.
func TestGroupThatWasNeverDiscoveredIsAwaited(t *testing.T) {
	s := newAPIServer(t)
	s.listWidgets(make(chan struct{}))
	r, clock := sealing(t, s, away("g", "other.example.com", "metrics.k8s.io"))
	if err := r.collector.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := r.collector.barriers.unreadKinds(); !slices.Equal(names, []string{"widgets.g", "*.other.example.com"}) {
		t.Errorf("not read: %v", names)
	}
	r.run.Seen(definitions)
	if result := r.seal(t); result != barrier.Running {
		t.Errorf("the barrier has %v at once", result)
	}
	clock.Step(sealLimit)
	r.seal(t)
	r.run.Seen(r.watches.monitors[widgetKind].kind)
	if result := r.answerCheck(); result != barrier.PassedWithout {
		t.Errorf("the barrier has %v", result)
	}
	if names := r.collector.barriers.describeUnseen(nil); !slices.Equal(names, []string{"*.other.example.com"}) {
		t.Errorf("passed without %v", names)
	}
}

// A definition in one version and an aggregated API in another one may share a group.
func TestVersionThatWasNeverDiscoveredIsAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		before bool // the version was discovered before
		want   []string
	}{"never discovered": {want: []string{"*.g"}}, "discovered before": {before: true}} {
		t.Run(name, func(t *testing.T) {
			d := &fakeDiscovery{}
			d.serveWidgets("v1", true)
			c := connected(t, newAPIServer(t), Config{Discovery: d})
			second := schema.GroupVersion{Group: "g", Version: "v2"}
			if tc.before {
				d.groups[0].Versions = append(d.groups[0].Versions, metav1.GroupVersionForDiscovery{GroupVersion: second.String(),
					Version: second.Version})
				d.lists = append(d.lists, &metav1.APIResourceList{GroupVersion: second.String()})
			}
			if err := c.discovery.discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.serveWidgets("v1", true)
			d.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{second: errors.New("away")}}
			for range 2 {
				if err := c.discovery.discover(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(c.discovery.hidden, tc.want) {
				t.Errorf("hidden %q, want %q", c.discovery.hidden, tc.want)
			}
		})
	}
}

func TestNextBarrierDoesNotAwaitGroupThatIsAway(t *testing.T) {
	r, _ := sealing(t, newAPIServer(t), &fakeDiscovery{})
	r.collector.discovery.hidden, r.collector.barriers.hiddenExcused = []string{"*.example.com"}, true
	r.run.Seen(definitions)
	if result := r.seal(t); result != barrier.PassedWithout {
		t.Errorf("the barrier has %v", result)
	}
}

// A discovery that is under way may find the kind of a new definition.
func TestBarrierAwaitsDiscoveryUnderWay(t *testing.T) {
	s := newAPIServer(t)
	s.handle("GET /apis/g/v1/widgets", http.NotFound)
	d := &fakeDiscovery{}
	d.serveWidgets("v1", true)
	begun, release := make(chan struct{}), make(chan struct{})
	d.called = func() { close(begun); <-release }
	c := connected(t, s, Config{Discovery: d})
	discovered, refreshed := make(chan error, 1), make(chan error, 1)
	go func() { discovered <- c.discovery.discover(t.Context()) }()
	<-begun
	go func() { refreshed <- c.discovery.refreshKinds(t.Context()) }()
	select {
	case err := <-refreshed:
		t.Errorf("the barrier goes on without the discovery: %v", err)
	case <-time.After(20 * time.Millisecond): // enough to notice it where it happens
	}
	close(release)
	if err := <-discovered; err != nil {
		t.Error(err)
	}
	if err := <-refreshed; err != nil || c.watches.monitors[widgetKind] == nil {
		t.Errorf("refreshKinds = %v, widgets are watched: %v", err, c.watches.monitors[widgetKind] != nil)
	}
}

// A barrier for a namespace does not read cluster-scoped kinds.
func TestUnreadKindOutsideNamespaceIsRemembered(t *testing.T) {
	client := &awaitingReads{podsRead: make(chan struct{})}
	c := New(Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Barriers: client, UnreadableAfter: time.Hour})
	cluster := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Zone"},
		Resource: "zones"}
	gone := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Gone"},
		Resource: "gone"}
	for _, kind := range []*graph.Kind{configMaps, cluster} {
		c.graph.Serve(kind)
		c.watches.monitors[kind.GroupKind()] = &monitor{watches: c.watches, kind: kind, listed: true}
	}
	c.barriers.unread = []*graph.Kind{configMaps, cluster, gone}
	c.barriers.runBarrier(t.Context(), map[types.UID]deletion{"owner": {namespace: "ns"}})
	if names := c.barriers.unreadKinds(); !slices.Equal(names, []string{"zones.g"}) {
		t.Errorf("not read: %v", names)
	}
}
