package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	claims = "/api/v1/namespaces/n/persistentvolumeclaims"
	claim  = claims + "/c"
	// object has a version, as the body of a PUT.
	object = `{"metadata":{"name":"c","resourceVersion":"7"}}`
)

// server stands for the API server. It records the requests.
type server struct {
	*httptest.Server
	handle http.HandlerFunc

	mu   sync.Mutex
	seen []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	s.mu.Unlock()
	if s.handle != nil {
		s.handle(w, r)
		return
	}
	_, _ = io.WriteString(w, "done")
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// world is a program, its proxy and the API server.
type world struct {
	t      *testing.T
	server *server
	proxy  *Proxy
	client *http.Client
	url    string
	// kubeconfig of the program.
	kubeconfig string

	mu     sync.Mutex
	faults []Fault
}

// newWorld starts a proxy with the rates, with changes of its configuration.
func newWorld(t *testing.T, rates map[Kind]float64, handle http.HandlerFunc, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, server: &server{handle: handle}}
	w.server.Server = httptest.NewServer(w.server)
	t.Cleanup(w.server.Close)
	config := Config{
		Program: "test", Upstream: &rest.Config{Host: w.server.URL}, Seed: 1, Rates: Rates{Faults: rates}, Log: w.log,
		MaxDelay: 50 * time.Millisecond, Tick: 5 * time.Millisecond,
	}
	for _, f := range change {
		f(&config)
	}
	var err error
	if w.proxy, err = New(config); err != nil {
		t.Fatal(err)
	}
	if err := w.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	w.connect()
	return w
}

// connect makes the client of the program from the kubeconfig.
func (w *world) connect() {
	w.t.Helper()
	w.kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := w.proxy.Kubeconfig(w.kubeconfig); err != nil {
		w.t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.client, err = rest.HTTPClientFor(config); err != nil {
		w.t.Fatal(err)
	}
	w.url = config.Host
}

func (w *world) log(fault Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault.Time = time.Time{}
	w.faults = append(w.faults, fault)
}

// kinds returns the kinds of the faults so far.
func (w *world) kinds() []Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kinds []Kind
	for _, fault := range w.faults {
		kinds = append(kinds, fault.Kind)
	}
	return kinds
}

// do sends a request and returns the answer.
func (w *world) do(method, path, body string) (reply, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.client.Do(r)
	if err != nil {
		return reply{}, fmt.Errorf("send: %w", err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		w.t.Errorf("the program got %s", response.Proto)
	}
	content, err := io.ReadAll(response.Body)
	return reply{code: response.StatusCode, header: response.Header, body: content}, err
}

func TestRequestsPassUnchanged(t *testing.T) {
	w := newWorld(t, nil, nil)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, claim, ""},
		{http.MethodPut, claim, object},
		{http.MethodPost, claims, "k8s\x00 and some bytes"},
		{http.MethodGet, "/version?timeout=5s", ""},
	} {
		got, err := w.do(c.method, c.path, c.body)
		if err != nil || got.code != http.StatusOK || string(got.body) != "done" {
			t.Errorf("%s %s: %v, %v", c.method, c.path, got, err)
		}
	}
	want := []string{"GET " + claim, "PUT " + claim + " " + object, "POST " + claims + " k8s\x00 and some bytes",
		"GET /version?timeout=5s"}
	if got := w.server.requests(); !slices.Equal(got, want) {
		t.Errorf("the API server got %q, want %q", got, want)
	}
	if kinds := w.kinds(); len(kinds) > 0 || w.proxy.Requests() != 4 {
		t.Errorf("faults %v, %d requests", kinds, w.proxy.Requests())
	}
}

func TestCredentialsOfProgramAreForwarded(t *testing.T) {
	w := newWorld(t, nil, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}, func(c *Config) { c.Upstream.BearerToken = "secret" })
	if got, err := w.do(http.MethodGet, claim, ""); string(got.body) != "Bearer secret" || err != nil {
		t.Errorf("got %q, %v", got.body, err)
	}
}

func TestUnreachableServerCutsRequest(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.server.Close()
	if got, err := w.do(http.MethodPost, claims, object); err == nil {
		t.Errorf("answered with %d", got.code)
	}
}

func TestRatesChangeAtRuntime(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.proxy.SetRates(Rates{Faults: map[Kind]float64{InternalError: 1}})
	if got, err := w.do(http.MethodGet, claim, ""); err != nil || got.code != http.StatusInternalServerError {
		t.Errorf("with faults: %v, %v", got, err)
	}
	w.proxy.SetRates(Rates{})
	if got, err := w.do(http.MethodGet, claim, ""); err != nil || got.code != http.StatusOK {
		t.Errorf("without faults: %v, %v", got, err)
	}
	if got := w.proxy.Stats(); got[InternalError] != 1 || len(got) != 1 {
		t.Errorf("Stats() = %v", got)
	}
}

func TestPauseStopsRequestsUntilResume(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.proxy.Pause()
	answered := make(chan error)
	go func() {
		_, err := w.do(http.MethodPost, claims, object)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered during the pause: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if got := w.server.requests(); len(got) > 0 {
		t.Errorf("reached the API server during the pause: %q", got)
	}
	w.proxy.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestKubeconfigNeedsStart(t *testing.T) {
	p, err := New(Config{Upstream: &rest.Config{Host: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kubeconfig(filepath.Join(t.TempDir(), "kubeconfig")); err == nil {
		t.Error("a kubeconfig without address was written")
	}
}

func TestOutageRefusesConnectionsForAWhile(t *testing.T) {
	w := newWorld(t, nil, stream(jsonLines, nil, nil))
	body := w.startWatch()
	w.proxy.Outage(time.Hour)
	w.proxy.Outage(0) // adds nothing
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the watch ended without an error")
	}
	if _, err := w.do(http.MethodGet, claim, ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("during the outage: %v", err)
	}
}

func TestOutageEnds(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.proxy.Outage(time.Millisecond)
	w.until("the API server is back", func() bool {
		got, err := w.do(http.MethodGet, claim, "")
		return err == nil && string(got.body) == "done"
	})
}

func TestDisconnectCutsAllRequests(t *testing.T) {
	watching := stream(jsonLines, nil, nil)
	w := newWorld(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			watching(w, r)
		}
	})
	body := w.startWatch()
	w.proxy.SetRates(Rates{Faults: map[Kind]float64{Disconnect: 1}})
	if _, err := w.do(http.MethodPost, claims, object); err == nil {
		t.Error("the request was answered")
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the watch ended without an error")
	}
	w.proxy.SetRates(Rates{})
	if _, err := w.do(http.MethodGet, claim, ""); err != nil {
		t.Errorf("with a new connection: %v", err)
	}
}

func TestCloseEndsOutageAndRequests(t *testing.T) {
	w := newWorld(t, nil, stream(jsonLines, nil, nil))
	body := w.startWatch()
	w.proxy.Outage(time.Millisecond)
	if err := w.proxy.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the watch ended without an error")
	}
	if _, err := w.do(http.MethodGet, claim, ""); err == nil {
		t.Error("a closed proxy answered")
	}
}
