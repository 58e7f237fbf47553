package holder_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// Rancher works on namespaces of a cluster from its own cluster, not from the control plane.
func TestNextStepNamesClusterOfController(t *testing.T) {
	for finalizer, want := range map[string]string{
		"controller.cattle.io/namespace-auth": "in the cluster of Rancher",
		"wrangler.cattle.io/on-remove":        "in the cluster of Rancher, or the server process of k3s or rke2",
		"kubernetes":                          "whoever runs the control plane",
	} {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "uid": "u", "finalizers": []any{finalizer}},
		}}
		family, known := families.Find(finalizer, "Namespace", "")
		if !known {
			t.Fatalf("%s is in no family", finalizer)
		}
		got := holder.Finder{Reader: clustertest.NewReader(t, clustertest.Objects{}.ServeHTTP)}.Judge(t.Context(), namespace,
			finalizer, family, "")
		if got.Verdict != blocker.Unknown || !strings.Contains(got.Next, want) ||
			strings.Contains(got.Next, "control plane") != strings.Contains(want, "control plane") {
			t.Errorf("%s: %v, next %q, want %q", finalizer, got.Verdict, got.Next, want)
		}
	}
}
