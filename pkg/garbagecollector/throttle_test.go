package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		status             int
		contentType, value string
		want               time.Time
	}{
		"overload pauses all requests":       {http.StatusTooManyRequests, "text/plain; charset=utf-8", "7", now.Add(7 * time.Second)},
		"an answer without a type pauses":    {http.StatusTooManyRequests, "", "1", now.Add(time.Second)},
		"a date pauses until the date":       {http.StatusTooManyRequests, "", now.Add(time.Minute).Format(http.TimeFormat), now.Add(time.Minute)},
		"a number for hours is bounded":      {http.StatusTooManyRequests, "", "36000", now.Add(maxPause)},
		"a date of another clock is bounded": {http.StatusTooManyRequests, "", now.Add(10 * time.Hour).Format(http.TimeFormat), now.Add(maxPause)},
		"a Status concerns one object":       {http.StatusTooManyRequests, "application/json", "7", time.Time{}},
		"no header, no pause":                {http.StatusTooManyRequests, "", "", time.Time{}},
		"a wrong header is ignored":          {http.StatusTooManyRequests, "", "soon", time.Time{}},
		"other failures concern one object":  {http.StatusServiceUnavailable, "", "7", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			header.Set("Content-Type", tc.contentType)
			header.Set("Retry-After", tc.value)
			if got := retryAfter(tc.status, header, now); !got.Equal(tc.want) {
				t.Errorf("retryAfter = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOnlyReadsWaitInTransport(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /api/v1/pods": true, "GET /api/v1/pods?watch=true": false, "GET /api/v1/pods?watch=1": false,
		"GET /api/v1/pods?watch=false":        true,
		"DELETE /api/v1/namespaces/ns/pods/p": false, "PATCH /api/v1/namespaces/ns/pods/p": false,
	} {
		var method, path string
		_, _ = fmt.Sscan(request, &method, &path)
		if got := waitsInTransport(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s waits: %v", request, got)
		}
	}
}

func TestOverloadOfOneGroupPausesNoOther(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/pods?watch=true": false, // it begins anew each time
		"/api/v1/pods":            true, "/apis/apps/v1/deployments": true,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": true, "/healthz": true,
		"/apis/example.com/v1/widgets": false, "/clusters/c-1/apis/example.com/v1/widgets": false,
		"/clusters/c-1/api/v1/pods": true,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		}))
		throttle := NewThrottle(clock.RealClock{})
		response, err := (&http.Client{Transport: throttle.Wrap(http.DefaultTransport)}).Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		server.Close()
		if got := throttle.remaining() > 0; got != want {
			t.Errorf("after an overload on %s all requests pause: %v", path, got)
		}
	}
}

func TestThrottleWaitsForLongestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle, began := NewThrottle(clock.RealClock{}), time.Now()
		throttle.pause(began.Add(3 * time.Second))
		throttle.pause(began.Add(time.Second))
		time.AfterFunc(2*time.Second, func() { throttle.pause(began.Add(5 * time.Second)) })
		if err := throttle.Wait(t.Context()); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("Wait = %v after %v", err, time.Since(began))
		}
		if err := throttle.Wait(t.Context()); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("waited again: %v until %v", err, time.Since(began))
		}
	})
}

func TestThrottleHonorsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle, began := NewThrottle(clock.RealClock{}), time.Now()
		throttle.pause(began.Add(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := throttle.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Wait = %v after %v", err, time.Since(began))
		}
	})
}

// overload answers one request by 429 and Retry-After: 1, and records when others arrive before that time.
type overload struct {
	*apiServer
	refused time.Time
	early   []string
}

// refuse answers the next request, other than a watch, by 429, and all that follow by the handler.
func (o *overload) serveHTTP(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		first := o.refused.IsZero()
		if first {
			o.refused = time.Now()
		} else if time.Since(o.refused) < time.Second {
			o.early = append(o.early, r.Method+" "+r.URL.Path)
		}
		o.mu.Unlock()
		if first {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// After one deletion is refused by 429, no worker sends anything before Retry-After. No deletion is lost.
func TestOverloadPausesAllWorkers(t *testing.T) {
	const dependents, workers = 20, 5
	s := newAPIServer(t)
	s.lack("absent")
	o := &overload{apiServer: s}
	s.Config.Handler = o.serveHTTP(s.Config.Handler)
	objects := []metav1.ObjectMeta{}
	for i := range dependents {
		name := fmt.Sprint("dependent-", i)
		objects = append(objects, configMap(name, "2", "absent"))
		s.answer("DELETE "+configMapPath+name, http.StatusOK,
			&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
				Details: &metav1.StatusDetails{UID: types.UID(name)}})
	}
	c := connected(t, s, Config{Workers: workers, Throttle: NewThrottle(clock.RealClock{})})
	c.observe(objects...)
	c.deleted("absent")
	c.worker.finish(t.Context(), "dependent-0", c.worker.reconcile(t.Context(), "dependent-0")) // refused
	c.begin()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range workers {
		c.watches.monitoring.StartWithContext(ctx, c.worker.run)
	}
	t.Cleanup(c.worker.queue.ShutDown)
	eventually(t, "all dependents are deleted", func() bool {
		left := 0
		for _, object := range objects {
			if s.count("DELETE "+configMapPath+object.Name) == 0 {
				left++
			}
		}
		return left == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(o.early) > 0 {
		t.Errorf("sent before Retry-After: %v", o.early)
	}
}

func TestOverloadPausesReads(t *testing.T) {
	s := newAPIServer(t)
	o := &overload{apiServer: s, refused: time.Now()}
	s.Config.Handler = o.serveHTTP(s.Config.Handler)
	s.answer("GET "+configMapPath+"owner", http.StatusOK, partial(configMap("owner", "1")))
	s.answer("GET /api/v1/configmaps", http.StatusOK,
		&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
			Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
	throttle := NewThrottle(clock.RealClock{})
	c := connected(t, s, Config{Throttle: throttle})
	throttle.pause(time.Now().Add(1100 * time.Millisecond))
	live, began, err := c.live.read(t.Context(), configMaps, "ns", "owner")
	if err != nil || live == nil || began.Sub(o.refused) < time.Second {
		t.Errorf("read %v %v after the refusal: %v", live, began.Sub(o.refused), err)
	}
	throttle.pause(time.Now().Add(100 * time.Millisecond))
	before := time.Now()
	if _, err := c.watches.reads.Resource(configMaps.GroupVersionResource()).
		List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(before) < 100*time.Millisecond {
		t.Errorf("listed after %v: %v", time.Since(before), err)
	}
	if len(o.early) > 0 {
		t.Errorf("sent before Retry-After: %v", o.early)
	}
}

// A barrier does not pass without a kind because the API server is busy.
func TestOverloadIsNoUnreadableKind(t *testing.T) {
	s := newAPIServer(t)
	throttle := NewThrottle(clock.RealClock{})
	c := connected(t, s, Config{Throttle: throttle, UnreadableAfter: time.Nanosecond})
	run := barrier.Begin[*graph.Kind](time.Nanosecond)
	run.Add(configMaps)
	run.Add(services)
	run.Vouch(services)
	run.Seen(services)
	run.Seal(true)
	c.watches.run = run
	r := c.barriers.newReads(run, "")
	throttle.pause(time.Now().Add(time.Hour))
	run.Next(time.Now())
	r.fail(t.Context(), configMaps, time.Now(), errPathNotFound)
	if result, _ := run.Result(time.Now()); result != barrier.Running {
		t.Errorf("while the server is busy: %v", result)
	}
	throttle.until = time.Time{}
	r.fail(t.Context(), configMaps, time.Now(), errPathNotFound)
	run.Next(time.Now())
	run.Checked(true, time.Now())
	if result, unread := run.Result(time.Now()); result != barrier.PassedWithout || len(unread) != 1 {
		t.Errorf("when the kind fails: %v", result)
	}
}

// client-go repeats a refused read until its time is over; an overload on the path of a definition's kind is one of the
// API server, that of another server is not.
func TestOverloadOfDefinedKindIsNoUnreadableKind(t *testing.T) {
	for name, tc := range map[string]struct {
		defined bool
		want    barrier.Result
	}{"kind of a definition": {true, barrier.Running}, "kind of another server": {false, barrier.PassedWithout}} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.handle("GET /apis/g/v1/widgets", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "too many requests", http.StatusTooManyRequests)
			})
			d := &fakeDiscovery{}
			d.serveWidgets("v1", true)
			c := connected(t, s, Config{Discovery: d, Throttle: NewThrottle(clock.RealClock{}),
				UnreadableAfter: time.Nanosecond})
			if err := c.discovery.discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			kind := c.graph.Kind(widgetKind)
			if tc.defined {
				c.watches.definitions["widgets.g"] = "uid"
			}
			run := barrier.Begin[*graph.Kind](time.Nanosecond)
			run.Add(kind)
			run.Add(services)
			run.Vouch(services)
			run.Seen(services)
			run.Seal(true)
			run.Next(time.Now())
			c.watches.run = run
			r := c.barriers.newReads(run, "")
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
			defer cancel()
			err := r.probe(ctx, kind)
			if err == nil {
				t.Fatal("the kind was read")
			}
			r.fail(t.Context(), kind, began, err)
			if result := r.answerCheck(); result != tc.want {
				t.Errorf("the barrier has %v, want %v", result, tc.want)
			}
		})
	}
}

func TestLostLeadershipEndsPause(t *testing.T) {
	s := newAPIServer(t)
	throttle := NewThrottle(clock.RealClock{})
	c := connected(t, s, Config{Throttle: throttle})
	throttle.pause(time.Now().Add(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.live.read(ctx, configMaps, "ns", "owner"); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := c.writer.admit(ctx, graph.Judgement{}, &attempt{}); !errors.Is(err, context.Canceled) {
		t.Errorf("admit: %v", err)
	}
}
