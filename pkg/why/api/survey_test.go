package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// reading is an Explorer that reads, and explains nothing.
type reading struct {
	chain.Explorer
	reader *cluster.Reader
}

func (r reading) Reader() *cluster.Reader { return r.reader }

// A thousand owners are explained at most, each with the objects of the cluster before it.
func TestSurveyIsTakenOnce(t *testing.T) {
	const objects = 5000
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
		Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := range objects {
		list.Items = append(list.Items, object(fmt.Sprint("o", i), 0))
	}
	e := reading{reader: clustertest.NewReader(t, clustertest.Discovery{
		Served: map[string][]metav1.APIResource{"v1": {{Name: "configmaps", Kind: "ConfigMap", Namespaced: true,
			Verbs: []string{"list", "delete", "watch"}}}},
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(&list) }),
	}.ServeHTTP)}
	owner := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "owner"}}}
	take := func() (items int, allocated uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		content := surveyOf(t.Context(), e, owner)
		runtime.ReadMemStats(&after)
		return len(content.items), after.TotalAlloc - before.TotalAlloc
	}
	if items, _ := take(); items != objects {
		t.Fatalf("the survey has %d objects", items)
	}
	if items, allocated := take(); items != objects || allocated > 100<<10 {
		t.Errorf("the second survey, of %d objects, takes %d KiB", items, allocated>>10)
	}
}

// No garbage collector waits for events, or for kinds that it cannot watch and delete.
func TestSurveyOfDependentsHasCollectedKindsOnly(t *testing.T) {
	collected := []string{"get", "list", "watch", "delete"}
	var mu sync.Mutex
	var listed []string
	e := reading{reader: clustertest.NewReader(t, clustertest.Discovery{
		Served: map[string][]metav1.APIResource{
			"v1": {{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: collected},
				{Name: "events", Kind: "Event", Namespaced: true, Verbs: collected},
				{Name: "componentstatuses", Kind: "ComponentStatus", Verbs: []string{"get", "list"}}},
			"events.k8s.io/v1":       {{Name: "events", Kind: "Event", Namespaced: true, Verbs: collected}},
			"metrics.k8s.io/v1beta1": {{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: []string{"get", "list"}}},
			"example.com/v1":         {{Name: "events", Kind: "Event", Namespaced: true, Verbs: collected}},
		},
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			listed = append(listed, r.URL.Path)
			mu.Unlock()
			_ = json.NewEncoder(w).Encode(metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
				Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
		}),
	}.ServeHTTP)}
	owner := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "owner"}}}
	content := surveyOf(t.Context(), e, owner)
	slices.Sort(listed)
	if want := []string{"/api/v1/configmaps", "/apis/example.com/v1/events"}; !slices.Equal(listed, want) || !content.isComplete() {
		t.Errorf("listed %q, want %q; missed %q", listed, want, content.missedNames())
	}
}
