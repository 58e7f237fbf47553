package faultproxy

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// rememberedVersions is the number of former versions that a proxy remembers.
const rememberedVersions = 1024

// versions are the resourceVersions that the program has seen, oldest first.
type versions struct {
	mu   sync.Mutex
	seen []string
}

// note appends a version.
func (v *versions) note(version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == "" || len(v.seen) > 0 && v.seen[len(v.seen)-1] == version {
		return
	}
	v.seen = append(v.seen, version)
	if len(v.seen) > rememberedVersions {
		v.seen = v.seen[1:]
	}
}

// at returns the version at fraction, from 0 for the oldest to 1, or "" if there is none.
func (v *versions) at(fraction float64) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.seen) == 0 {
		return ""
	}
	return v.seen[min(int(fraction*float64(len(v.seen))), len(v.seen)-1)]
}

// staleTransport requests an older state where the decision says so.
type staleTransport struct {
	proxy *Proxy
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *staleTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	e := r.Context().Value(exchangeKey{}).(*exchange)
	version := t.proxy.staleVersion(e)
	if version == "" {
		return t.next.RoundTrip(r)
	}
	response, err := t.next.RoundTrip(atVersion(r.Context(), r, version))
	if err == nil && response.StatusCode == http.StatusOK {
		fault := e.made.fault
		fault.Version = version
		t.proxy.inject(fault)
		return response, nil
	}
	if err == nil { // etcd was compacted, or restored from a snapshot before this version
		_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
		_ = response.Body.Close()
	}
	return t.next.RoundTrip(r)
}

// staleVersion returns the version of the state that answers a stale list, or "".
func (p *Proxy) staleVersion(e *exchange) string {
	if e.made.fault.Kind != StaleList {
		return ""
	}
	if e.request.namesVersion() {
		return e.request.query.Get("resourceVersion") // not older, and no newer
	}
	return p.versions.at(e.made.fraction)
}

// atVersion returns r for the state at exactly this version. The watch cache, which
// would answer r, ignores the limit.
func atVersion(ctx context.Context, r *http.Request, version string) *http.Request {
	changed := r.Clone(ctx)
	query := changed.URL.Query()
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", "Exact")
	query.Del("limit")
	changed.URL.RawQuery = query.Encode()
	return changed
}
