package load

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/exeunt-io/exeunt/test/bench/measure"
)

// meter counts the requests of clients as the API server counts them.
type meter struct {
	mu         sync.Mutex
	requests   measure.Requests
	watchBytes map[string]float64
}

func newMeter() *meter {
	return &meter{requests: measure.Requests{}, watchBytes: map[string]float64{}}
}

// counters returns what was counted so far.
func (m *meter) counters() measure.Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	return measure.Counters{Requests: maps.Clone(m.requests), WatchBytes: maps.Clone(m.watchBytes)}
}

// wrap counts the requests that pass through next.
func (m *meter) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		kind := kindOf(request)
		kind.Code = response.StatusCode
		switch {
		case kind.Resource == "":
		case kind.Verb == "WATCH": // counted by the API server when it ends
			response.Body = &countedBody{ReadCloser: response.Body, note: func(size int) { m.noteBytes(kind.Resource, size) }}
		default:
			m.mu.Lock()
			m.requests[kind]++
			m.mu.Unlock()
		}
		return response, nil
	})
}

func (m *meter) noteBytes(resource string, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchBytes[resource] += float64(size)
}

// transport makes a function a RoundTripper.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// countedBody counts the bytes that are read.
type countedBody struct {
	io.ReadCloser
	note func(size int)
}

// Read reads from the body.
func (b *countedBody) Read(buffer []byte) (int, error) {
	size, err := b.ReadCloser.Read(buffer)
	b.note(size)
	return size, err
}

// kindOf returns the kind of a request without its status. The resource is empty if the
// request is for none.
func kindOf(request *http.Request) measure.Request {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return measure.Request{}
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	kind := measure.Request{Verb: request.Method, Resource: parts[0]}
	named := len(parts) > 1
	if len(parts) > 2 {
		kind.Resource += "/" + parts[2]
	}
	switch {
	case kind.Verb == http.MethodGet && request.URL.Query().Has("watch"):
		kind.Verb = "WATCH"
	case kind.Verb == http.MethodGet && !named:
		kind.Verb = "LIST"
	case kind.Verb == http.MethodDelete && !named:
		kind.Verb = "DELETECOLLECTION"
	}
	return kind
}

// limited lets at most size requests pass at once, except for watches.
func limited(size int) func(http.RoundTripper) http.RoundTripper {
	slots := make(chan struct{}, size)
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if kindOf(request).Verb == "WATCH" {
				return next.RoundTrip(request)
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			return next.RoundTrip(request)
		})
	}
}
