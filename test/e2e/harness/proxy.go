package harness

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// NewFaultProxy starts a proxy with the credentials of account, and returns the kubeconfig
// of the proxy. The proxy ends with the test.
func (s *Session) NewFaultProxy(account sandbox.Identity, config faultproxy.Config) (*faultproxy.Proxy, string) {
	s.T.Helper()
	direct, err := s.Plane.Kubeconfig(s.Ctx, account)
	s.Must(err, "write kubeconfig")
	proxy, file, err := StartFaultProxy(s.T, direct, config)
	s.Must(err, "start proxy")
	return proxy, file
}

// StartFaultProxy is [Session.NewFaultProxy] with the credentials of a kubeconfig.
func StartFaultProxy(
	t testing.TB, kubeconfig string, config faultproxy.Config,
) (proxy *faultproxy.Proxy, file string, err error) {
	t.Helper()
	if config.Upstream, err = sandbox.LoadConfig(kubeconfig); err != nil {
		return nil, "", err
	}
	if proxy, err = faultproxy.New(config); err != nil {
		return nil, "", err
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Errorf("stop proxy: %v", err)
		}
	})
	file = filepath.Join(t.TempDir(), "kubeconfig")
	return proxy, file, errors.Join(proxy.Start(), proxy.Kubeconfig(file))
}

// LeaseProxy forwards the requests of one process to the API server. Once HangAtWrite is set, requests
// for leases get no answer from the next write of another object on, events excluded.
type LeaseProxy struct {
	Forward     http.Handler
	HangAtWrite atomic.Bool
	hanging     atomic.Bool

	mu      sync.Mutex
	renewed time.Time // when the last successful lease renewal arrived
	wrote   time.Time // when the last write of another object arrived, events excluded
}

// NewLeaseProxy returns a proxy for the account, and the kubeconfig of the proxy.
func (s *Session) NewLeaseProxy(account sandbox.Identity) (*LeaseProxy, string) {
	s.T.Helper()
	p := &LeaseProxy{}
	_, file := s.NewFaultProxy(account, faultproxy.Config{Wrap: func(forward http.Handler) http.Handler {
		p.Forward = forward
		return p
	}})
	return p, file
}

// ServeHTTP implements [http.Handler].
func (p *LeaseProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	lease, event := strings.Contains(r.URL.Path, "/leases"), strings.Contains(r.URL.Path, "/events")
	if lease && p.hanging.Load() {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice the end of the connection
		<-r.Context().Done()
		return
	}
	if r.Method != http.MethodGet && !lease && !event {
		p.note(&p.wrote, arrived)
		if p.HangAtWrite.Load() {
			p.hanging.Store(true)
		}
	}
	answer := &statusWriter{ResponseWriter: w}
	p.Forward.ServeHTTP(answer, r)
	if lease && r.Method == http.MethodPut && answer.status == http.StatusOK {
		p.note(&p.renewed, arrived)
	}
}

func (p *LeaseProxy) note(at *time.Time, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*at = now
}

// Times returns when the last successful renewal and the last other write arrived.
func (p *LeaseProxy) Times() (renewed, wrote time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.renewed, p.wrote
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController], which flushes watch events.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
