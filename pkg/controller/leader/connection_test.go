package leader

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// apiServer answers over HTTP/2, as kube-apiserver does.
type apiServer struct {
	*httptest.Server
	*testing.T
	client     *http.Client
	connection *Connection
	// writes were executed.
	writes atomic.Int64
	status atomic.Int64
	// watched ends each watch when it has an entry.
	watched chan struct{}
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{T: t, connection: &Connection{}, watched: make(chan struct{})}
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("%s", r.Proto)
		}
		if r.Method != http.MethodGet {
			if body, _ := io.ReadAll(r.Body); string(body) != "change" {
				t.Errorf("the body is %q", body)
			}
			s.writes.Add(1)
		}
		w.WriteHeader(int(s.status.Load()))
		if isWatch(r) {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-s.watched:
			case <-r.Context().Done():
			}
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	config.Wrap(s.connection.Wrap)
	var err error
	if s.client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *apiServer) do(method, path string) error {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader("change"))
	if err != nil {
		s.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		err = response.Body.Close()
	}
	return err
}

// expect checks how many interruptions there were since the last call.
func (s *apiServer) expect(after string, want bool) {
	s.Helper()
	if got := s.connection.interruptions.Swap(0) > 0; got != want {
		s.Errorf("%s: interrupted %t, want %t", after, got, want)
	}
}

func TestWriteIsNotSentOverAnUnconfirmedConnection(t *testing.T) {
	s := newAPIServer(t)
	if err := s.do(http.MethodGet, "/"); err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("restored")
	var restored atomic.Bool
	var confirmations, known int64
	defer s.connection.guard(func(context.Context) error {
		confirmations++
		if known = s.connection.interruptions.Load(); restored.Load() && known > 1 {
			return refusal
		}
		return nil
	})()
	if err := s.do(http.MethodPatch, "/"); err != nil || s.writes.Load() != 1 || confirmations != 1 {
		t.Errorf("a write: %v, %d writes, %d confirmations", err, s.writes.Load(), confirmations)
	}
	s.CloseClientConnections() // the API server restarts; the client may not know yet
	if err := s.do(http.MethodPatch, "/"); err != nil && s.connection.interruptions.Load() < 2 {
		t.Error(err)
	}
	before := s.writes.Load()
	if err := s.do(http.MethodPatch, "/"); err != nil || s.writes.Load() != before+1 || known < 2 {
		t.Errorf("a write over the new connection: %v, %d writes, confirmed after %d interruptions", err,
			s.writes.Load()-before, known)
	}
	restored.Store(true)
	before = s.writes.Load()
	s.CloseClientConnections()
	if err := s.do(http.MethodPatch, "/"); err == nil || s.writes.Load() != before {
		t.Errorf("a write to a restored API server: %v, %d writes", err, s.writes.Load()-before)
	}
}

// The write itself opens the connection: it is held back, confirmed and sent, once.
func TestWriteThatOpensConnectionIsConfirmedAgain(t *testing.T) {
	s := newAPIServer(t)
	var known []int64
	defer s.connection.guard(func(context.Context) error {
		known = append(known, s.connection.interruptions.Load())
		return nil
	})()
	if err := s.do(http.MethodPatch, "/"); err != nil || s.writes.Load() != 1 {
		t.Errorf("a write: %v, %d writes", err, s.writes.Load())
	}
	if len(known) != 2 || known[0] != 0 || known[1] != 1 {
		t.Errorf("confirmed after interruptions %v, want before the connection and after it", known)
	}
}

func TestLeaseRequestsAreNotHeldBack(t *testing.T) {
	s := newAPIServer(t)
	defer s.connection.guard(func(context.Context) error { return ErrUnconfirmed })()
	if err := s.do(http.MethodPut, "/"); !errors.Is(err, ErrUnconfirmed) || s.writes.Load() != 0 {
		t.Errorf("a write: %v", err)
	}
	request, err := http.NewRequestWithContext(withoutGuard(t.Context()), http.MethodPut, s.URL,
		strings.NewReader("change"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || s.writes.Load() != 1 {
		t.Errorf("a write of the lease: %v, %d writes", err, s.writes.Load())
	}
}

func TestWhatCountsAsAnInterruption(t *testing.T) {
	s := newAPIServer(t)
	get := func() error { return s.do(http.MethodGet, "/") }
	_ = get()
	s.expect("the first request", true)
	_ = get()
	s.expect("another request", false)
	for status, want := range map[int]bool{http.StatusNotFound: false, http.StatusConflict: false,
		http.StatusTooManyRequests: false, http.StatusServiceUnavailable: true, http.StatusInternalServerError: true} {
		s.status.Store(int64(status))
		_ = get()
		s.expect(http.StatusText(status), want)
	}
	s.status.Store(http.StatusOK)

	watch := func(timeout string) (ended chan struct{}) {
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			_ = s.do(http.MethodGet, "/?watch=true&timeoutSeconds="+timeout)
		}()
		return ended
	}
	ended := watch("300")
	s.watched <- struct{}{}
	<-ended
	s.expect("a watch that ends early", true)
	ended = watch("0")
	s.watched <- struct{}{}
	<-ended
	s.expect("a watch that ends in time", false)

	closing := &watchBody{ReadCloser: io.NopCloser(strings.NewReader("")), connection: s.connection,
		request: httptest.NewRequest(http.MethodGet, "/", http.NoBody), lasts: time.Hour, began: time.Now()}
	_ = closing.Close()
	_, _ = closing.Read(make([]byte, 1))
	s.expect("a watch that the client closes", false)

	s.Config.Close()
	s.Close()
	if err := get(); err == nil {
		t.Error("the API server answers")
	}
	s.expect("an API server that is away", true)
}
