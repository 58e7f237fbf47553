package library

import (
	"net/http"
	"strings"
	"sync"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
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
	p := &lateWatch{}
	_, file, err := harness.StartFaultProxy(s.T, s.kubeconfig,
		faultproxy.Config{Wrap: func(forward http.Handler) http.Handler {
			p.forward = forward
			return p
		}})
	s.Must(err, "start proxy")
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
