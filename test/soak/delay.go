package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// lateFor is for how long after a restore of etcd volumes are late, lateBy by how much they are later than claims.
	lateFor = 20 * time.Second
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

// delayVolumes begins the delays.
func (w *world) delayVolumes() {
	for _, d := range w.delays {
		d.begin()
	}
}

func (d *delay) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until, d.claims = time.Now().Add(startLimit), make(chan struct{})
}

// wrap delays lists and watches of volumes.
func (d *delay) wrap(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			d.await(r)
		}
		forward.ServeHTTP(response, r)
	})
}

// await waits if the request has to wait.
func (d *delay) await(r *http.Request) {
	d.mu.Lock()
	until, claims := d.until, d.claims
	d.mu.Unlock()
	if !time.Now().Before(until) {
		return
	}
	switch r.URL.Path {
	case "/api/v1/persistentvolumeclaims":
		d.listClaims()
	case "/api/v1/persistentvolumes":
		select {
		case <-claims:
			sandbox.Pause(r.Context(), min(lateBy, time.Until(until)))
		case <-time.After(time.Until(until)):
		case <-r.Context().Done():
		}
	}
}

// listClaims notes that claims are listed: the delay ends soon.
func (d *delay) listClaims() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.claims:
	default:
		close(d.claims)
		d.until = time.Now().Add(lateFor)
	}
}
