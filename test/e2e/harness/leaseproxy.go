package harness

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

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// LeaseProxy forwards the requests of one process to the API server. While Hanging is
// set, requests for leases get no answer.
type LeaseProxy struct {
	server  *httptest.Server
	Forward http.Handler
	Hanging atomic.Bool

	mu      sync.Mutex
	renewed time.Time // when the last successful lease renewal arrived
	wrote   time.Time // when the last write of another object arrived, events excluded
}

// NewLeaseProxy returns a proxy for the account, and the kubeconfig of the proxy.
func (s *Session) NewLeaseProxy(account sandbox.Identity) (*LeaseProxy, string) {
	s.T.Helper()
	file, err := s.Plane.Kubeconfig(s.Ctx, account)
	s.Must(err, "write kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", file)
	s.Must(err, "load kubeconfig")
	transport, err := rest.TransportFor(config)
	s.Must(err, "make transport")
	target, err := url.Parse(config.Host)
	s.Must(err, "parse address of the API server")
	p := &LeaseProxy{}
	p.Forward = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewServer(p)
	s.T.Cleanup(p.server.CloseClientConnections)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	file = filepath.Join(s.T.TempDir(), "kubeconfig")
	s.Must(clientcmd.WriteToFile(*kubeconfig, file), "write kubeconfig of the proxy")
	return p, file
}

// ServeHTTP implements [http.Handler].
func (p *LeaseProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	lease, event := strings.Contains(r.URL.Path, "/leases"), strings.Contains(r.URL.Path, "/events")
	if lease && p.Hanging.Load() {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice the end of the connection
		<-r.Context().Done()
		return
	}
	if r.Method != http.MethodGet && !lease && !event {
		p.note(&p.wrote, arrived)
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
