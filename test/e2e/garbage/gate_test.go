package garbage

import (
	"io"
	"net"
	"net/http"
	"path"
	"sync"
	"testing"
)

// gate holds back what watches of some resources deliver, until it is opened.
type gate struct {
	mu     sync.Mutex
	closed map[string]chan struct{}
	// fails are resources whose requests fail with status 500.
	fails map[string]bool
}

func newGate() *gate { return &gate{closed: map[string]chan struct{}{}, fails: map[string]bool{}} }

// hold holds back the watches of the resource.
func (g *gate) hold(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed[resource] = make(chan struct{})
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
}

func (g *gate) modify(response *http.Response) error {
	resource := path.Base(response.Request.URL.Path)
	g.mu.Lock()
	fails := g.fails[resource]
	g.mu.Unlock()
	if fails {
		response.StatusCode = http.StatusInternalServerError
	}
	if response.Request.URL.Query().Get("watch") != "" {
		response.Body = &held{ReadCloser: response.Body, gate: g, resource: resource}
	}
	return nil
}

// held is the stream of a watch.
type held struct {
	io.ReadCloser
	*gate
	resource string
}

// Read returns the next part of the stream once the gate lets it pass.
func (h *held) Read(buffer []byte) (int, error) {
	n, err := h.ReadCloser.Read(buffer)
	h.mu.Lock()
	closed := h.closed[h.resource]
	h.mu.Unlock()
	if closed != nil {
		<-closed
	}
	return n, err
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err, "listen")
	return listener
}
