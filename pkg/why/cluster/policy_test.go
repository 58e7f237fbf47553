package cluster_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestDriverListIsWhereTheBindingSays(t *testing.T) {
	binding := func(spec any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	for name, tc := range map[string]struct {
		binding *unstructured.Unstructured
		want    string
	}{
		"not read":          {nil, "exeunt-system/exeunt-drivers"},
		"of a release":      {binding(map[string]any{"paramRef": map[string]any{"name": "exeunt-drivers", "namespace": "storage"}}), "storage/exeunt-drivers"},
		"of another list":   {binding(map[string]any{"paramRef": map[string]any{"name": "drivers", "namespace": "storage"}}), "storage/drivers"},
		"without a list":    {binding(map[string]any{"policyName": "exeunt-finalizer-before-deletion"}), "exeunt-system/exeunt-drivers"},
		"with an odd value": {binding("text"), "exeunt-system/exeunt-drivers"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cluster.DriverList(tc.binding); got.Namespace+"/"+got.Name != tc.want || got.Kind != "ConfigMap" {
				t.Errorf("DriverList = %+v, want %s", got, tc.want)
			}
		})
	}
}
