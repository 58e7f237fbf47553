package garbage

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gate holds back what watches of some resources deliver, and some requests.
type gate struct {
	mu      sync.Mutex
	closed  map[string]chan struct{}
	streams map[*held]struct{}
	// fails are resources whose requests fail with status 500.
	fails map[string]bool
	rules []*rule
}

func newGate() *gate {
	return &gate{closed: map[string]chan struct{}{}, streams: map[*held]struct{}{}, fails: map[string]bool{}}
}

// hold holds back the watches of the resource.
func (g *gate) hold(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed[resource] == nil {
		g.closed[resource] = make(chan struct{})
	}
}

// release lets the watches of the resource pass.
func (g *gate) release(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed := g.closed[resource]; closed != nil {
		close(closed)
		delete(g.closed, resource)
	}
}

// cut ends the watches of the resource without what was held back, and lets later ones pass.
func (g *gate) cut(resource string) {
	g.mu.Lock()
	for stream := range g.streams {
		if stream.resource == resource {
			stream.end()
		}
	}
	g.mu.Unlock()
	g.release(resource)
}

// fail makes lists and watches of the resource fail, or work again.
func (g *gate) fail(resource string, fails bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails[resource] = fails
}

// open lets everything pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for resource, closed := range g.closed {
		close(closed)
		delete(g.closed, resource)
	}
	for _, r := range g.rules {
		r.once.Do(func() { close(r.opened) })
	}
	g.rules = nil
}

func (g *gate) modify(response *http.Response) error {
	resource := path.Base(response.Request.URL.Path)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails[resource] {
		response.StatusCode = http.StatusInternalServerError
	}
	if response.Request.URL.Query().Get("watch") != "" {
		stream := &held{ReadCloser: response.Body, gate: g, resource: resource, ended: make(chan struct{})}
		g.streams[stream] = struct{}{}
		response.Body = stream
	}
	return nil
}

// held is the stream of a watch.
type held struct {
	io.ReadCloser
	*gate
	resource string
	once     sync.Once
	ended    chan struct{}
}

// Read returns the next part of the stream once the gate lets it pass.
func (h *held) Read(buffer []byte) (int, error) {
	n, err := h.ReadCloser.Read(buffer)
	h.mu.Lock()
	closed := h.closed[h.resource]
	h.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-h.ended:
		}
	}
	select {
	case <-h.ended:
		return 0, io.EOF
	default:
		return n, err
	}
}

// Close forgets the stream.
func (h *held) Close() error {
	h.mu.Lock()
	delete(h.streams, h)
	h.mu.Unlock()
	h.end()
	return h.ReadCloser.Close()
}

func (h *held) end() { h.once.Do(func() { close(h.ended) }) }

// rule holds requests, or answers them.
type rule struct {
	method, path string
	// status is the answer; 0 if the request is held.
	status          int
	arrival, once   sync.Once
	reached, opened chan struct{}
}

// stop holds requests with the method and the path until the rule is opened.
func (g *gate) stop(method, path string) *rule { return g.answer(method, path, 0) }

// answer answers requests with the method and the path until the rule is opened.
func (g *gate) answer(method, path string, status int) *rule {
	r := &rule{method: method, path: path, status: status, reached: make(chan struct{}), opened: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rules = append(g.rules, r)
	return r
}

// open lets the requests of the rule pass.
func (r *rule) open() { r.once.Do(func() { close(r.opened) }) }

func (r *rule) isOpen() bool {
	select {
	case <-r.opened:
		return true
	default:
		return false
	}
}

// guard returns a handler that applies the rules.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		g.mu.Lock()
		i := slices.IndexFunc(g.rules, func(r *rule) bool {
			return r.method == request.Method && r.path == request.URL.Path && !r.isOpen()
		})
		var found *rule
		if i >= 0 {
			found = g.rules[i]
		}
		g.mu.Unlock()
		if found == nil || !found.apply(response) {
			next.ServeHTTP(response, request)
		}
	})
}

// apply returns true if the rule has answered the request.
func (r *rule) apply(response http.ResponseWriter) bool {
	r.arrival.Do(func() { close(r.reached) })
	switch r.status {
	case 0:
		<-r.opened
		return false
	case http.StatusNotFound: // as an API server answers that does not serve the path
		http.Error(response, "404 page not found", http.StatusNotFound)
		return true
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(r.status)}
	if r.status == http.StatusGone {
		status.Reason = metav1.StatusReasonExpired
	}
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(r.status)
	_ = json.NewEncoder(response).Encode(status)
	return true
}
