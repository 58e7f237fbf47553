package garbagecollector

import (
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
			secrets := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Namespaced: true}
			c.graph.Serve(secrets)
			c.graph.Observe(secrets, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "u", ResourceVersion: "7",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "owner", UID: "o"}}}})
			judged, _ := c.judge("u")
			next, err := c.delete(t.Context(), judged, garbage.DeleteBackground, &turn{})
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
