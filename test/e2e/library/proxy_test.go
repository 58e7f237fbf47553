package library

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// lateWatch passes the requests of one process on to the API server. The events of
// PersistentVolumes are late from the moment that the test chooses.
type lateWatch struct {
	forward http.Handler
	mu      sync.Mutex
	late    bool
}

// newLateWatch returns a proxy and the kubeconfig of its client, who has the rights of the
// provisioner's service account.
func (s *fixture) newLateWatch() (*lateWatch, string) {
	s.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	s.Must(err, "load kubeconfig")
	transport, err := rest.TransportFor(config)
	s.Must(err, "make transport")
	target, err := url.Parse(config.Host)
	s.Must(err, "parse address of the API server")
	p := &lateWatch{}
	p.forward = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(p)
	s.T.Cleanup(server.CloseClientConnections)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	file := filepath.Join(s.T.TempDir(), "kubeconfig")
	s.Must(clientcmd.WriteToFile(*kubeconfig, file), "write kubeconfig of the proxy")
	return p, file
}

// ServeHTTP implements [http.Handler].
func (p *lateWatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/persistentvolumes") && r.URL.Query().Get("watch") != "" {
		w = &lateWriter{ResponseWriter: w, proxy: p, request: r}
	}
	p.forward.ServeHTTP(w, r)
}

// hold makes all events late that were not sent yet.
func (p *lateWatch) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = true
}

func (p *lateWatch) isLate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// lateWriter drops the events of a watch while they are late: they come with the next
// watch.
type lateWriter struct {
	http.ResponseWriter
	proxy   *lateWatch
	request *http.Request
}

// Write implements [http.ResponseWriter].
func (w *lateWriter) Write(text []byte) (int, error) {
	if w.proxy.isLate() {
		<-w.request.Context().Done()
		return 0, w.request.Context().Err()
	}
	return w.ResponseWriter.Write(text)
}

// Unwrap is for [http.ResponseController], which flushes watch events.
func (w *lateWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
