package garbagecollector

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// apiServer is an API server whose answers a test scripts. Other paths are not found.
type apiServer struct {
	*httptest.Server
	mu       sync.Mutex
	handlers map[string]http.HandlerFunc
	// requests are the methods and paths of the requests; bodies are those of the writes.
	requests, bodies []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{handlers: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := r.Method + " " + r.URL.Path
	s.mu.Lock()
	s.requests = append(s.requests, request)
	if len(body) > 0 {
		s.bodies = append(s.bodies, string(body))
	}
	handler := s.handlers[request]
	s.mu.Unlock()
	if handler == nil {
		handler = http.NotFound
	}
	handler(w, r)
}

// handle answers the requests with the method and path.
func (s *apiServer) handle(request string, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[request] = handler
}

// answer answers the requests with the method and path by the object.
func (s *apiServer) answer(request string, status int, object any) {
	s.handle(request, func(w http.ResponseWriter, _ *http.Request) { respond(w, status, object) })
}

func respond(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object)
}

// count returns the number of requests with the method and path.
func (s *apiServer) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.requests), func(r string) bool { return r != request }))
}

// failure returns the status of a failed request for the object.
func failure(code int, reason metav1.StatusReason, resource, name string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason,
		Details: &metav1.StatusDetails{Name: name, Kind: resource}}
}

// partial returns the metadata as an API server answers them.
func partial(object metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
		Kind: "PartialObjectMetadata"}, ObjectMeta: object}
}

// fakeDiscovery is what the API server serves.
type fakeDiscovery struct {
	discovery.DiscoveryInterface
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	err    error
	// called is called first, if it is set.
	called func()
}

func (d *fakeDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if d.called != nil {
		d.called()
	}
	return d.groups, d.lists, d.err
}

// serveWidgets has the API server serve the kind Widget of the group g in the version.
func (d *fakeDiscovery) serveWidgets(version string, namespaced bool) {
	served := metav1.GroupVersionForDiscovery{GroupVersion: "g/" + version, Version: version}
	d.groups = []*metav1.APIGroup{{Name: "g", PreferredVersion: served,
		Versions: []metav1.GroupVersionForDiscovery{served}}}
	d.lists = []*metav1.APIResourceList{{GroupVersion: "g/" + version, APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch", "delete"}},
	}}}
}

var widgetKind = schema.GroupKind{Group: "g", Kind: "Widget"}

// connected returns a collector that talks to the server. Its reflectors end with the test.
func connected(t *testing.T, s *apiServer, config Config) *Collector {
	t.Helper()
	client := &rest.Config{Host: s.URL, QPS: -1}
	if config.Throttle != nil {
		client.Wrap(config.Throttle.Wrap)
	}
	var err error
	if config.Reads, err = metadata.NewForConfig(client); err != nil {
		t.Fatal(err)
	}
	if config.REST, err = NewWriteClient(client); err != nil {
		t.Fatal(err)
	}
	config.Live, config.Barriers = config.Reads, config.Reads
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Recorder == nil {
		config.Recorder = record.NewFakeRecorder(100)
	}
	c := New(config)
	watching, stop := context.WithCancel(context.Background())
	c.watches.watching = watching
	t.Cleanup(func() { stop(); c.watches.monitoring.Wait() })
	c.change(func(g *graph.Graph) { g.Serve(configMaps) })
	return c
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// aggregatedWidgets returns a kind that an aggregated API server may serve, and the path of its object dependent.
func aggregatedWidgets() (*graph.Kind, string) {
	return &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "aggregated", Version: "v1", Kind: "Widget"},
			Resource: "widgets", Namespaced: true},
		"/apis/aggregated/v1/namespaces/ns/widgets/dependent"
}
