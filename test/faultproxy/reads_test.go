package faultproxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

func TestDelaysKeepRequestAndAnswer(t *testing.T) {
	for _, kind := range []Kind{DelayRequest, DelayAnswer, SlowList} {
		t.Run(string(kind), func(t *testing.T) {
			long := strings.Repeat("0123456789", 10_000)
			w := newWorld(t, map[Kind]float64{kind: 1}, func(w http.ResponseWriter,
				_ *http.Request) {
				_, _ = io.WriteString(w, long)
			})
			start := time.Now()
			if got, err := w.do(http.MethodGet, claims, ""); err != nil || string(got.body) != long {
				t.Errorf("got %d bytes, %v", len(got.body), err)
			}
			w.expectOnly(kind)
			if delay := w.faults[0].Delay; delay <= 0 || time.Since(start) < delay {
				t.Errorf("a delay of %s ended after %s", delay, time.Since(start))
			}
			if got := len(w.server.requests()); got != 1 {
				t.Errorf("%d requests", got)
			}
		})
	}
}

// listWorld is a world whose program has seen the versions 8 and 9 in a watch.
func listWorld(t *testing.T, handle http.HandlerFunc) *world {
	t.Helper()
	first := stream(jsonLines, [][]byte{frameOf(t, jsonLines, watch.Modified, 8), frameOf(t, jsonLines, watch.Added, 9)},
		nil)
	w := newWorld(t, map[Kind]float64{StaleList: 1}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			first(w, r)
			return
		}
		handle(w, r)
	})
	body := w.startWatch()
	if _, err := io.ReadFull(body, make([]byte, len(frameOf(t, jsonLines, watch.Added, 9)))); err != nil {
		t.Fatal(err)
	}
	w.until("both events have passed", func() bool { return w.proxy.versions.at(1) == "9" })
	return w
}

func TestStaleListShowsFormerState(t *testing.T) {
	w := listWorld(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
	for path, want := range map[string][]string{
		claims + "?limit=5&resourceVersion=0": {
			claims + "?resourceVersion=8&resourceVersionMatch=Exact", claims + "?resourceVersion=9&resourceVersionMatch=Exact",
		},
		claims + "?resourceVersion=3": {claims +
			"?resourceVersion=3&resourceVersionMatch=Exact"},
		claims + "?resourceVersion=3&resourceVersionMatch=NotOlderThan": {claims +
			"?resourceVersion=3&resourceVersionMatch=Exact"},
		claims:              {claims},
		claims + "?limit=5": {claims + "?limit=5"},
		claim:               {claim},
	} {
		if got, err := w.do(http.MethodGet, path, ""); err != nil || string(got.body) != "done" {
			t.Errorf("%s: %v, %v", path, got, err)
		}
		got := w.server.requests()
		if last := strings.TrimPrefix(got[len(got)-1], "GET "); !slices.Contains(want, last) {
			t.Errorf("%s became %s", path, last)
		}
	}
	if got := w.proxy.Stats()[StaleList]; got != 3 {
		t.Errorf("%d stale lists", got)
	}
}

func TestLostFormerStateIsNotServed(t *testing.T) {
	w := listWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
			w.WriteHeader(http.StatusGone)
			return
		}
		_, _ = io.WriteString(w, "done")
	})
	got, err := w.do(http.MethodGet, claims+"?resourceVersion=0", "")
	if err != nil || got.code != http.StatusOK || string(got.body) != "done" || w.proxy.Stats()[StaleList] > 0 {
		t.Errorf("got %v, %v, faults %v", got, err, w.kinds())
	}
}

func TestObjectsAtStartOfWatchAreNoVersions(t *testing.T) {
	w := newWorld(t, nil, nil)
	body := &watchBody{proxy: w.proxy, format: jsonLines, request: parse(t, http.MethodGet,
		claims+"?watch=1&sendInitialEvents=true", "")}
	body.remember(frameOf(t, jsonLines, watch.Added, 5))
	if got := w.proxy.versions.at(0); got != "" {
		t.Errorf("remembers %s", got)
	}
	body.remember(frameOf(t, jsonLines, watch.Bookmark, 9))
	if got := w.proxy.versions.at(0); got != "9" {
		t.Errorf("remembers %q", got)
	}
}

func TestMemoryOfVersionsIsBounded(t *testing.T) {
	var v versions
	for i := range 2 * rememberedVersions {
		v.note(string(rune('a' + i%20)))
	}
	if len(v.seen) != rememberedVersions {
		t.Errorf("%d versions", len(v.seen))
	}
}

func TestWatchListIsRefusedWhenOff(t *testing.T) {
	w := newWorld(t, nil, nil, func(c *Config) { c.NoWatchList = true })
	_, err := w.clientset(jsonLines).CoreV1().PersistentVolumeClaims("n").Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if !apierrors.IsInvalid(err) || len(w.server.requests()) > 0 {
		t.Errorf("got %v, requests %q", err, w.server.requests())
	}
}
