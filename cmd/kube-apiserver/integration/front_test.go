package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
)

// front is a load balancer in front of one API server at a time. While there is none, requests wait.
type front struct {
	mu       sync.Mutex
	changed  chan struct{} // closed with each change
	current  *server
	watching *watching
	// watches and lists are how many the current server has answered.
	watches, lists int
}

// newFront returns a load balancer, and the client that uses it.
func newFront(t *testing.T, s *server) (*front, *server) {
	f := &front{changed: make(chan struct{})}
	f.use(t, s)
	return f, &server{url: "https://front", client: &http.Client{Transport: f}}
}

// use sends further requests to a server, or to none, and ends the watches at the one before, as its end does.
func (f *front) use(t *testing.T, s *server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watching != nil {
		f.watching.end()
	}
	close(f.changed)
	f.changed, f.watching = make(chan struct{}), newWatching(t)
	f.current, f.watches, f.lists = s, 0, 0
}

// await returns the current server, once there is one, and its watches.
func (f *front) await(ctx context.Context) (*server, *watching, error) {
	for {
		f.mu.Lock()
		s, changed, watching := f.current, f.changed, f.watching
		f.mu.Unlock()
		if s != nil {
			return s, watching, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// RoundTrip sends a request to the current server. If that server ends meanwhile, the answer is 503, and the request
// may have been carried out.
func (f *front) RoundTrip(request *http.Request) (*http.Response, error) {
	s, watching, err := f.await(request.Context())
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	query := request.URL.Query()
	forwarded := request.Clone(request.Context())
	forwarded.URL.Scheme, forwarded.URL.Host, forwarded.Host = target.Scheme, target.Host, ""
	send := buffered
	if query.Get("watch") != "" {
		send = watching.stream
	}
	response, err := send(s, forwarded)
	if err != nil {
		return unavailable(request), nil
	}
	f.count(s, response, query)
	return response, nil
}

// buffered returns the response with its whole body.
func buffered(s *server, request *http.Request) (*http.Response, error) {
	response, err := s.client.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
}

// count counts the lists and watches of an informer at the current server.
func (f *front) count(s *server, response *http.Response, query url.Values) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.current != s || response.StatusCode != http.StatusOK || response.Request.Method != http.MethodGet:
	case query.Get("watch") != "" && query.Get("sendInitialEvents") == "":
		f.watches++
	case query.Has("resourceVersion") || query.Get("sendInitialEvents") != "":
		f.lists++
	}
}

// counted returns how many watches and lists the current server has answered.
func (f *front) counted() (watches, lists int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watches, f.lists
}

func unavailable(request *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Request: request, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader([]byte("{}")))}
}

// watching are the watches at one server.
type watching struct {
	ended <-chan struct{}
	end   context.CancelFunc
	// with returns a context that ends with the watches, too.
	with func(context.Context) (context.Context, context.CancelFunc)
}

func newWatching(t *testing.T) *watching {
	ctx, end := context.WithCancel(t.Context())
	return &watching{ctx.Done(), end, func(request context.Context) (context.Context, context.CancelFunc) {
		both, cancel := context.WithCancel(request)
		context.AfterFunc(ctx, cancel)
		return both, cancel
	}}
}

// stream returns the response with a body that ends with the server.
func (w *watching) stream(s *server, request *http.Request) (*http.Response, error) {
	ctx, cancel := w.with(request.Context())
	response, err := s.client.Transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &stream{response.Body, w.ended, cancel}
	return response, nil
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	ended  <-chan struct{}
	cancel context.CancelFunc
}

// Read reads what the server sends. The end of the server is that of the body, and no error.
func (s *stream) Read(data []byte) (int, error) {
	n, err := s.ReadCloser.Read(data)
	if err == nil {
		return n, nil
	}
	select {
	case <-s.ended:
		return n, io.EOF
	default:
		return n, err
	}
}

func (s *stream) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}
