package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
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
			Verbs: []string{"list", "delete"}}}},
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
