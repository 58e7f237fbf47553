// Package servertime tells the time by the clock of the API server: deletion timestamps are its times, and the clock of
// this machine may be minutes off. The Date headers of answers bound the difference of the two clocks.
package servertime

import (
	"net/http"
	"sync"
	"time"
)

// precision is that of a Date header.
const precision = time.Second

// Clock is the clock of the API server.
type Clock struct {
	// began has a monotonic reading: a step of the wall clock changes nothing.
	began time.Time

	mu    sync.Mutex
	known bool
	// The clock of the API server is ahead of ours by at least least and at most most.
	least, most time.Duration
}

// New returns a clock that tells the time of this machine until the first answer.
func New() *Clock { return &Clock{began: time.Now()} }

// Now returns the time of the API server.
func (c *Clock) Now() time.Time { return c.local(time.Now()).Add(c.ahead()) }

// Skew returns how far the wall clock of this machine is ahead of the API server.
func (c *Clock) Skew() time.Duration { return time.Now().Round(0).Sub(c.Now()) }

// local returns the time since the clock began as a wall time.
func (c *Clock) local(at time.Time) time.Time { return c.began.Round(0).Add(at.Sub(c.began)) }

func (c *Clock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least + (c.most-c.least)/2
}

// observe narrows the bounds by an answer. An answer that contradicts them replaces them: a clock was set, or another
// API server answered.
func (c *Clock) observe(date, sent, received time.Time) {
	least, most := date.Sub(c.local(received)), date.Add(precision).Sub(c.local(sent))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && least <= c.most && c.least <= most {
		least, most = max(least, c.least), min(most, c.most)
	}
	c.known, c.least, c.most = true, least, most
}

// Wrap returns a transport whose answers set the clock.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return roundTripper{next, c} }

type roundTripper struct {
	http.RoundTripper
	clock *Clock
}

// RoundTrip sends one request.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := time.Now()
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		r.clock.observe(date, sent, time.Now())
	}
	return response, nil
}

// WrappedRoundTripper enables client-go to close the idle connections of the transport.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }
