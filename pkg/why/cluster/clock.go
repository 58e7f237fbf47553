package cluster

import (
	"net/http"
	"sync"
	"time"
)

// serverClock follows the clock of the API server: the header Date of its latest answer,
// and what has passed since. The local clock may be wrong by hours.
type serverClock struct {
	local func() time.Time

	mu    sync.Mutex
	count int
	date  time.Time // by the API server
	at    time.Time // by the local clock, when date was read
}

func (c *serverClock) observe(header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && date.After(c.date) {
		c.date, c.at = date, c.local()
	}
}

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return c.local()
	}
	return c.date.Add(c.local().Sub(c.at))
}

func (c *serverClock) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

func (c *serverClock) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
}

// roundTripper counts requests and reads the clock of the API server.
type roundTripper struct {
	next  http.RoundTripper
	clock *serverClock
}

// RoundTrip sends the request.
func (t roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	t.clock.sent()
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.clock.observe(response.Header)
	}
	return response, err
}
