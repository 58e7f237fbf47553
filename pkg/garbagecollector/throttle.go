package garbagecollector

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxPause bounds a pause: a proxy with a wrong clock or number must not stop the collection.
const maxPause = time.Minute

// Throttle pauses all requests that share it while the API server is overloaded: after an answer 429 with
// the header Retry-After, no request is sent before that time. client-go alone delays the refused request,
// while other workers go on. A nil Throttle never pauses. It is safe for concurrent use.
type Throttle struct {
	clock clock.Clock
	mu    sync.Mutex
	until time.Time
	// refused is when a request of a group was refused last whose overload does not concern all.
	refused map[string]time.Time
}

// NewThrottle returns a throttle that does not pause yet.
func NewThrottle(clock clock.Clock) *Throttle {
	return &Throttle{clock: clock, refused: map[string]time.Time{}}
}

// Wait waits until the pause is over. Its error is that of the context.
func (t *Throttle) Wait(ctx context.Context) error {
	for {
		remaining := t.remaining()
		if remaining <= 0 {
			return nil
		}
		timer := t.clock.NewTimer(remaining)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for Retry-After: %w", ctx.Err())
		case <-timer.C():
		}
	}
}

// remaining returns how long the pause lasts from now on; not more than 0 if there is none.
func (t *Throttle) remaining() time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until.Sub(t.clock.Now())
}

// pause pauses until the time, if no longer pause was set.
func (t *Throttle) pause(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = later(t.until, until)
}

// Wrap returns a transport that notices the answers 429, and whose reads wait while requests pause. Watches
// do not wait. Writes do not wait here either: a judgement would grow old, so that they wait before.
func (t *Throttle) Wrap(next http.RoundTripper) http.RoundTripper { return &throttled{next, t} }

type throttled struct {
	http.RoundTripper
	throttle *Throttle
}

// RoundTrip sends one request.
func (t *throttled) RoundTrip(request *http.Request) (*http.Response, error) {
	if waitsInTransport(request) {
		if err := t.throttle.Wait(request.Context()); err != nil {
			return nil, err
		}
	}
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil {
		boundRetryAfter(response.Header)
	}
	// A watch that is refused begins anew each time, and would extend the pause for ever.
	if err == nil && !isWatch(request) {
		t.throttle.note(request.URL.Path, retryAfter(response.StatusCode, response.Header, t.throttle.clock.Now()))
	}
	return response, err
}

// note notes an answer that asks to pause until the time; zero for an answer that does not.
func (t *Throttle) note(path string, until time.Time) {
	switch {
	case until.IsZero():
	case concernsAll(path):
		t.pause(until)
	default:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.refused[groupOf(path)] = t.clock.Now()
	}
}

// hasRefused reports whether a request of the group, whose overload does not concern all requests, was refused since.
func (t *Throttle) hasRefused(group string, since time.Time) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at, refused := t.refused[group]
	return refused && !at.Before(since)
}

// groupOf returns the API group of a path, "" for the core group.
func groupOf(path string) string {
	_, rest, _ := strings.Cut(path, "/apis/")
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// concernsAll reports whether an overload on the path concerns all requests. Other groups may be those of an
// aggregated API server; one of Kubernetes shows in its own groups as well.
func concernsAll(path string) bool {
	group := groupOf(path)
	return group == "" || isGroupOfKubernetes(group)
}

// boundRetryAfter bounds the time for which client-go delays a request that was refused.
func boundRetryAfter(header http.Header) {
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && seconds > int(maxPause.Seconds()) {
		header.Set("Retry-After", strconv.Itoa(int(maxPause.Seconds())))
	}
}

// WrappedRoundTripper enables client-go to close the idle connections of the transport.
func (t *throttled) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// waitsInTransport reports whether the request is a read that is no watch.
func waitsInTransport(request *http.Request) bool {
	return request.Method == http.MethodGet && !isWatch(request)
}

func isWatch(request *http.Request) bool {
	watches, _ := strconv.ParseBool(request.URL.Query().Get("watch"))
	return watches
}

// retryAfter returns until when an answer asks all requests to pause; zero if it does not. An overloaded API
// server answers 429 with a plain text. A 429 with a Status concerns one object or kind, such as a webhook that
// refuses a deletion, or a storage that is being initialized: the object alone is retried later.
func retryAfter(status int, header http.Header, now time.Time) time.Time {
	if status != http.StatusTooManyRequests || strings.HasPrefix(header.Get("Content-Type"), "application/") {
		return time.Time{}
	}
	value := header.Get("Retry-After")
	at, err := http.ParseTime(value)
	if seconds, numberErr := strconv.Atoi(value); numberErr == nil {
		at = now.Add(time.Duration(min(seconds, int(maxPause.Seconds()))) * time.Second)
	} else if err != nil {
		return time.Time{}
	}
	if latest := now.Add(maxPause); at.After(latest) {
		return latest
	}
	return at
}

// later returns the later time.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
