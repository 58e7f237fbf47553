package garbagecollector

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	definitionOfWidgets = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.g"
	serviceOfWidgets    = "GET /apis/apiregistration.k8s.io/v1/apiservices/v1.g"
)

// define answers the definition of widgets.
func (s *apiServer) define(scope apiextensionsv1.ResourceScope) { s.defineKind("Widget", scope) }

// defineKind answers the definition of widgets, which are of the kind.
func (s *apiServer) defineKind(kind string, scope apiextensionsv1.ResourceScope) {
	s.answer(definitionOfWidgets, http.StatusOK, &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.g", UID: "definition"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "g", Scope: scope, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: "widgets"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}},
	})
}

// listWidgets answers lists of widgets once released is closed, and watches never.
func (s *apiServer) listWidgets(released <-chan struct{}) {
	s.handle("GET /apis/g/v1/widgets", func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			respond(w, http.StatusBadRequest, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, "widgets", ""))
		case query.Get("watch") != "":
			<-r.Context().Done()
		default:
			select {
			case <-released:
				respond(w, http.StatusOK,
					&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
						Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
			case <-r.Context().Done():
			}
		}
	})
}

// Events of the kind are needed as long as the program runs, not only as long as the barrier.
func TestKindFoundByBarrierStaysWatched(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.NamespaceScoped)
	released := make(chan struct{})
	s.listWidgets(released)
	c := connected(t, s, Config{})
	reading, end := context.WithCancel(t.Context())
	if _, err := c.discovery.serveDefined(reading, "widgets.g"); err != nil {
		t.Fatal(err)
	}
	end()
	close(released)
	eventually(t, "list widgets after the barrier", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.watches.monitors[widgetKind].listed
	})
}

// watchingWidgets returns a collector of widgets in version v1, and its discovery.
func watchingWidgets(t *testing.T, s *apiServer) (*Collector, *fakeDiscovery) {
	t.Helper()
	d := &fakeDiscovery{}
	d.serveWidgets("v1", true)
	c := connected(t, s, Config{Discovery: d})
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, d
}

func TestBarrierAwaitsKindInNewVersion(t *testing.T) {
	c, d := watchingWidgets(t, newAPIServer(t))
	c.mu.Lock()
	c.watches.run = barrier.Begin[*graph.Kind](c.barriers.unreadableAfter)
	c.barriers.newReads(c.watches.run, "").add(func(*graph.Kind) bool { return true })
	c.watches.run.Seal(true)
	c.mu.Unlock()
	d.serveWidgets("v2", true)
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	requests, _ := c.watches.run.Next(c.clock.Now())
	if _, awaited := requests[c.watches.monitors[widgetKind].kind]; !awaited || len(requests) != 1 {
		t.Errorf("requests: %v", requests)
	}
}

// A definition that was deleted and created again may have another scope. An aggregated API server has no definition:
// discovery alone says which scope its kinds have now. The objects of the former scope are gone.
func TestKindChangesScope(t *testing.T) {
	for name, serve := range map[string]func(*apiServer){
		"kind of a definition": func(s *apiServer) { s.define(apiextensionsv1.ClusterScoped) },
		"aggregated kind":      (*apiServer).aggregated,
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			serve(s)
			c, d := watchingWidgets(t, s)
			c.change(func(g *graph.Graph) {
				g.Observe(g.Kind(widgetKind), &metav1.ObjectMeta{Namespace: "ns", Name: "former", UID: "former",
					ResourceVersion: "1"})
			})
			d.serveWidgets("v1", false)
			if err := c.discovery.discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if kind := c.graph.Kind(widgetKind); kind == nil || kind.Namespaced || c.watches.monitors[widgetKind].kind != kind {
				t.Errorf("served: %+v", kind)
			}
			if c.graph.Has("former") {
				t.Error("an object of the former scope is in the graph")
			}
		})
	}
}

// A barrier of the next second must not pass with the former scope.
func TestScopeThatCouldNotBeReadIsReadAgain(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.ClusterScoped)
	c, d := watchingWidgets(t, s)
	d.serveWidgets("v1", false)
	s.mu.Lock()
	before := maps.Clone(s.handlers)
	for request := range s.handlers {
		s.handlers[request] = func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}
	s.mu.Unlock()
	if err := c.discovery.discover(t.Context()); err == nil {
		t.Fatal("the definition cannot be read")
	}
	s.mu.Lock()
	s.handlers = before
	s.mu.Unlock()
	if err := c.discovery.refreshKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind := c.graph.Kind(widgetKind); kind == nil || kind.Namespaced {
		t.Errorf("served: %+v", kind)
	}
}

// An API server with a stale definition must not undo a new one.
func TestScopeIsReadLive(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.NamespaceScoped)
	c, d := watchingWidgets(t, s)
	c.change(func(g *graph.Graph) {
		g.Observe(g.Kind(widgetKind), &metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "one", ResourceVersion: "1"})
	})
	d.serveWidgets("v1", false)
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.graph.Kind(widgetKind).Namespaced || !c.graph.Has("one") {
		t.Error("the kind was dropped")
	}
}

// Version v1 was withdrawn while version v2 cannot be discovered: the kind exists.
func TestKindOfGroupThatCannotBeDiscoveredIsKept(t *testing.T) {
	s := newAPIServer(t)
	s.answer(definitionOfWidgets, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"customresourcedefinitions", "widgets.g"))
	s.answer(serviceOfWidgets, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"apiservices", "v1.g"))
	c, d := watchingWidgets(t, s)
	d.lists = []*metav1.APIResourceList{{GroupVersion: "v1"}}
	d.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "g",
		Version: "v2"}: http.ErrServerClosed}}
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches.monitors[widgetKind] == nil || c.graph.Kind(widgetKind) == nil {
		t.Error("the kind was dropped")
	}
}

// A definition that was deleted and created again may name another kind. Both kinds would watch one path.
func TestKindDefinedUnderOtherName(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.NamespaceScoped)
	c, d := watchingWidgets(t, s)
	c.change(func(g *graph.Graph) {
		g.Observe(g.Kind(widgetKind), &metav1.ObjectMeta{Namespace: "ns", Name: "former", UID: "former",
			ResourceVersion: "1"})
	})
	s.defineKind("Gadget", apiextensionsv1.NamespaceScoped)
	d.lists[0].APIResources[0].Kind = "Gadget"
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches.monitors[widgetKind] != nil || c.graph.Has("former") {
		t.Error("the former kind is still watched")
	}
	if c.watches.monitors[schema.GroupKind{Group: "g", Kind: "Gadget"}] == nil {
		t.Error("the present kind is not watched")
	}
}

// An API server with a stale definition may serve a kind that is no longer defined, or not yet.
func TestKindThatIsDefinedIsKept(t *testing.T) {
	s := newAPIServer(t)
	s.define(apiextensionsv1.NamespaceScoped)
	c, d := watchingWidgets(t, s)
	d.lists[0].APIResources[0].Kind = "Gadget"
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches.monitors[widgetKind] == nil {
		t.Error("the kind was dropped")
	}
}

// The API server removes the APIService of a group with its last definition.
func TestKindIsGoneWithLastDefinitionOfItsGroup(t *testing.T) {
	s := newAPIServer(t)
	s.answer(definitionOfWidgets, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"customresourcedefinitions", "widgets.g"))
	s.answer(serviceOfWidgets, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"apiservices", "v1.g"))
	c, d := watchingWidgets(t, s)
	d.groups, d.lists = nil, []*metav1.APIResourceList{{GroupVersion: "v1"}}
	if err := c.discovery.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches.monitors[widgetKind] != nil {
		t.Error("the kind is still watched")
	}
}

// An API server of another version may serve a kind of Kubernetes no longer. Nothing waits for it. An API server that
// starts deletes the APIServices of versions that it does not know, also if a newer one runs beside it.
func TestKindOfKubernetesOutlivesItsAPIService(t *testing.T) {
	kind := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1alpha3",
		Kind: "PodSchedulingContext"}, Resource: "podschedulingcontexts"}
	const path = "GET /apis/apiregistration.k8s.io/v1/apiservices/v1alpha3.resource.k8s.io"
	for name, tc := range map[string]struct {
		status int
		answer any
		later  bool
	}{
		"no APIService":    {http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound, "apiservices", "v1alpha3.resource.k8s.io"), true},
		"local APIService": {http.StatusOK, map[string]any{"spec": map[string]any{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.answer(path, tc.status, tc.answer)
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			c := connected(t, s, Config{Clock: clock})
			c.discovery.gone.setWithdrawn([]*graph.Kind{kind})
			for _, want := range []bool{false, tc.later} {
				if gone, err := c.discovery.gone.isGone(t.Context(), kind); err != nil || gone != want {
					t.Errorf("after %s: gone: %v, %v", clock.Since(c.discovery.gone.withdrawn[kind.GroupKind()]), gone, err)
				}
				clock.Step(droppedAfter)
			}
		})
	}
}
