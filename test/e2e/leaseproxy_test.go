package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// leaseProxy passes the requests of one process on to the API server, except that
// requests for leases hang from a moment that the test chooses.
type leaseProxy struct {
	server  *httptest.Server
	forward http.Handler
	hanging atomic.Bool

	mu sync.Mutex
	// renewed is when the last renewal that succeeded came here, wrote the last write of
	// an object that is neither lease nor event.
	renewed, wrote time.Time
}

// newLeaseProxy returns a proxy for the account, and the kubeconfig of its client.
func (s *scene) newLeaseProxy(account sandbox.Identity) (*leaseProxy, string) {
	s.t.Helper()
	file, err := s.plane.Kubeconfig(s.ctx, account)
	s.must(err, "write kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", file)
	s.must(err, "load kubeconfig")
	transport, err := rest.TransportFor(config)
	s.must(err, "make transport")
	target, err := url.Parse(config.Host)
	s.must(err, "parse address of the API server")
	p := &leaseProxy{}
	p.forward = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewServer(p)
	s.t.Cleanup(p.server.CloseClientConnections)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	file = filepath.Join(s.t.TempDir(), "kubeconfig")
	s.must(clientcmd.WriteToFile(*kubeconfig, file), "write kubeconfig of the proxy")
	return p, file
}

// ServeHTTP implements [http.Handler].
func (p *leaseProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	lease, event := strings.Contains(r.URL.Path, "/leases"), strings.Contains(r.URL.Path, "/events")
	if lease && p.hanging.Load() {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
		<-r.Context().Done()
		return
	}
	if r.Method != http.MethodGet && !lease && !event {
		p.note(&p.wrote, arrived)
	}
	answer := &statusWriter{ResponseWriter: w}
	p.forward.ServeHTTP(answer, r)
	if lease && r.Method == http.MethodPut && answer.status == http.StatusOK {
		p.note(&p.renewed, arrived)
	}
}

func (p *leaseProxy) note(at *time.Time, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*at = now
}

func (p *leaseProxy) times() (renewed, wrote time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.renewed, p.wrote
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] flush the answers of watches.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
