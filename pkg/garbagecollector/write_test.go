package garbagecollector

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// TestDeletedObjectWithFinalizerIsNotRetried: the API server answers with the object, of
// whatever kind, if a finalizer or a grace period keeps it.
func TestDeletedObjectWithFinalizerIsNotRetried(t *testing.T) {
	const metadata = `"metadata":{"namespace":"ns","name":"one","uid":"u","resourceVersion":"8","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/f"]}`
	for name, answer := range map[string]string{
		"metadata":  `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",` + metadata + `}`,
		"an object": `{"apiVersion":"v1","kind":"Secret",` + metadata + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			var accepted string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				accepted = r.Header.Get("Accept")
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			client, err := NewWriteClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			c := New(Config{REST: client, Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
			secrets := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets",
				Namespaced: true}
			c.graph.Serve(secrets)
			c.graph.Observe(secrets, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one",
				UID: "u", ResourceVersion: "7",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "owner", UID: "o"}}}})
			judged, _ := c.judge("u")
			next, err := c.writer.delete(t.Context(), judged, garbage.DeleteBackground, &attempt{})
			if next != done || err != nil {
				t.Errorf("got %v, %v", next, err)
			}
			if after, found := c.judge("u"); !found || !after.State.Sent && !after.State.Deleting {
				t.Errorf("the object would be deleted again: %v", fmt.Sprint(after.State, found))
			}
			if !strings.Contains(accepted, "as=PartialObjectMetadata") {
				t.Errorf("the answer is the whole object: Accept: %s", accepted)
			}
		})
	}
}

// hookLimiter calls the function when a write is admitted.
type hookLimiter struct {
	flowcontrol.RateLimiter
	admit func()
}

func (l hookLimiter) Wait(context.Context) error {
	l.admit()
	return nil
}

// A rate limit, or an overloaded API server, may delay a deletion for a minute. Meanwhile the dependent may get
// an owner that lives: a deletion whose version is not compared must rest on a read after the delay.
func TestDeletionWithoutVersionRestsOnReadAfterDelay(t *testing.T) {
	aggregated := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Widget"},
		Resource: "widgets", Namespaced: true}
	for name, tc := range map[string]struct {
		kind      *graph.Kind
		path      string
		conflicts int
	}{
		"after conflicts":                   {configMaps, dependentPath, maxConflicts},
		"of a kind that may ignore version": {aggregated, "/apis/g/v1/namespaces/ns/widgets/dependent", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.answer("GET "+tc.path, http.StatusOK, partial(configMap("dependent", "5", "absent")))
			s.answer("DELETE "+tc.path, http.StatusOK, &metav1.Status{})
			adopt := func() { s.answer("GET "+tc.path, http.StatusOK, partial(configMap("dependent", "6", "live"))) }
			c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Limiter: hookLimiter{admit: adopt}})
			dependent := configMap("dependent", "5", "absent")
			c.observe(configMap("live", "1"))
			c.change(func(g *graph.Graph) {
				g.Serve(tc.kind)
				g.Observe(tc.kind, &dependent)
			})
			c.readAbsent("absent")
			judged, _ := c.judge("dependent")
			next, err := c.writer.delete(t.Context(), judged, garbage.DeleteBackground, &attempt{conflicts: tc.conflicts})
			if next == done || err != nil || s.count("DELETE "+tc.path) > 0 {
				t.Errorf("delete = %v, %v after %v", next, err, s.requests)
			}
		})
	}
}

// Other fields of an object may change all the time.
func TestDeletionByUIDIsSentIfDecisionIsTheSame(t *testing.T) {
	s := newAPIServer(t)
	s.answer("GET "+dependentPath, http.StatusOK, partial(configMap("dependent", "6", "absent")))
	// Also a pod that is being deleted within its grace period is answered so, and still exists.
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{UID: "dependent"}})
	c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	c.observe(configMap("dependent", "5", "absent"))
	c.readAbsent("absent")
	judged, _ := c.judge("dependent")
	next, err := c.writer.delete(t.Context(), judged, garbage.DeleteBackground, &attempt{conflicts: maxConflicts})
	if next != done || err != nil || s.count("DELETE "+dependentPath) != 1 ||
		strings.Contains(s.bodies[0], "resourceVersion") {
		t.Errorf("delete = %v, %v after %v: %v", next, err, s.requests, s.bodies)
	}
	if !c.graph.Has("dependent") {
		t.Error("the dependent counts as gone without its event")
	}
}
