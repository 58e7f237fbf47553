package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// lateFor is how long a list of volumes waits for one of claims after a restore of etcd, and for how long lists of
	// volumes are late then; lateBy is by how much.
	lateFor = 40 * time.Second
	lateBy  = 3 * time.Second
)

// delay has one program list volumes after claims, so that its caches have the claims of a restored etcd beside the
// volumes of before.
type delay struct {
	mu sync.Mutex
	// until is when the delay ends; claims is closed once claims are listed.
	until  time.Time
	claims chan struct{}
}

// newDelay returns the delay of a program.
func (w *world) newDelay() *delay {
	d := &delay{}
	w.delays = append(w.delays, d)
	return d
}

// delayVolumes begins the delays while the API server is down.
func (w *world) delayVolumes() {
	for _, d := range w.delays {
		d.begin()
	}
}

func (d *delay) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until, d.claims = time.Now().Add(2*lateFor), make(chan struct{})
}

// wrap delays lists and watches of volumes.
func (d *delay) wrap(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/persistentvolumes" {
			d.await(r)
		}
		forward.ServeHTTP(response, r)
	})
}

// await waits until volumes may be listed.
func (d *delay) await(r *http.Request) {
	d.mu.Lock()
	until, claims := d.until, d.claims
	d.mu.Unlock()
	if !time.Now().Before(until) {
		return
	}
	select {
	case <-claims:
		sandbox.Pause(r.Context(), min(lateBy, time.Until(until)))
	case <-time.After(lateFor): // a watch that goes on lists no claims
	case <-r.Context().Done():
	}
}

// answered ends the delay soon once the API server has answered a list of claims.
func (d *delay) answered(response *http.Response) error {
	r := response.Request
	lists := !r.URL.Query().Has("watch") || r.URL.Query().Has("sendInitialEvents")
	if response.StatusCode != http.StatusOK || r.URL.Path != "/api/v1/persistentvolumeclaims" || !lists {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claims == nil {
		return nil
	}
	select {
	case <-d.claims:
	default:
		close(d.claims)
		d.until = time.Now().Add(lateFor)
	}
	return nil
}
