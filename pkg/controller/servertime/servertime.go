// Package servertime tells the time by the clock of the API server: deletion timestamps are its times, and the clock of
// this machine may be minutes off. The Date headers of answers bound the difference of the two clocks. They have whole
// seconds: after one answer the bounds are a second apart, and answers at other fractions of a second narrow them.
package servertime

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// precision is that of a Date header.
	precision = time.Second
	// slew is the part of their age by which bounds widen: NTP changes the rate of each clock by 500 millionths at most.
	slew = 1000
	// exact is how far apart bounds may be that need no question, mostQuestions how many one Sharpen asks.
	exact, mostQuestions = 100 * time.Millisecond, 5
	// sharpened is how long Sharpen asks nothing after it has asked.
	sharpened = time.Minute
)

// Clock is the clock of the API server.
type Clock struct {
	// began has a monotonic reading: a step of the wall clock changes nothing.
	began time.Time

	mu    sync.Mutex
	known bool
	// At the time noted the clock of the API server was ahead of ours by at least least and at most most.
	noted       time.Time
	least, most time.Duration
	// asked is when Sharpen last began to ask.
	asked time.Time
}

// New returns a clock that tells the time of this machine until the first answer.
func New() *Clock { return &Clock{began: time.Now()} }

// Now returns the time of the API server, or one that is up to a second earlier, but no later one: nothing may happen
// before its time.
func (c *Clock) Now() time.Time {
	now := time.Now()
	least, _ := c.ahead(now)
	return c.local(now).Add(least)
}

// Latest returns the time of the API server, or one that is up to a second later, but no earlier one: what is permitted
// until a time must have ended by then.
func (c *Clock) Latest() time.Time {
	now := time.Now()
	_, most := c.ahead(now)
	return c.local(now).Add(most)
}

// Skew returns how far the wall clock of this machine is ahead of the API server.
func (c *Clock) Skew() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(c.middle(now))
}

// Sharpen asks for a time until Now is late by a tenth of a second at most, a few times in as many seconds, if it is
// not yet known that well. Ask sends a request through the transport.
func (c *Clock) Sharpen(ctx context.Context, ask func(ctx context.Context) error) {
	if !c.startAsking() {
		return
	}
	for range mostQuestions {
		wait := c.question()
		if wait == 0 {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if ask(ctx) != nil {
			return
		}
	}
}

// startAsking reports whether there is a question that was not asked in the last minute.
func (c *Clock) startAsking() bool {
	if c.question() == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() && time.Since(c.asked) < sharpened {
		return false
	}
	c.asked = time.Now()
	return true
}

// question returns in which time an answer would halve the bounds: if they are right in the middle, a second of the API
// server begins then, and the answer tells whether it has begun. It returns 0 if they are narrow.
func (c *Clock) question() time.Duration {
	now := time.Now()
	if least, most := c.ahead(now); most-least <= exact {
		return 0
	}
	middle := c.middle(now)
	return middle.Truncate(precision).Add(precision).Sub(middle)
}

// middle returns the time of the API server if it is in the middle of the bounds.
func (c *Clock) middle(now time.Time) time.Time {
	least, most := c.ahead(now)
	return c.local(now).Add(least + (most-least)/2)
}

// local returns the time since the clock began as a wall time.
func (c *Clock) local(at time.Time) time.Time { return c.began.Round(0).Add(at.Sub(c.began)) }

// ahead returns the bounds now.
func (c *Clock) ahead(now time.Time) (least, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aged(now)
}

// aged returns the bounds now. The caller holds the mutex.
func (c *Clock) aged(now time.Time) (least, most time.Duration) {
	if !c.known {
		return 0, 0
	}
	wider := now.Sub(c.noted) / slew
	return c.least - wider, c.most + wider
}

// observe narrows the bounds by an answer. An answer that contradicts them replaces them: a clock was set, or another
// API server answered.
func (c *Clock) observe(date, sent, received time.Time) {
	least, most := date.Sub(c.local(received)), date.Add(precision).Sub(c.local(sent))
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, after := c.aged(received); c.known && least <= after && before <= most {
		least, most = max(least, before), min(most, after)
	}
	c.known, c.noted, c.least, c.most = true, received, least, most
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
