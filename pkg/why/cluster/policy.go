package cluster

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/deploy"
)

// DriverList returns where the admission policy finds its list of drivers: where its binding
// says, nil if it was not read, or where the manifests put the list.
func DriverList(binding *unstructured.Unstructured) Ref {
	ref := Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap",
		Namespace: deploy.Namespace, Name: deploy.Drivers}
	if binding == nil {
		return ref
	}
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(binding.Object, "spec", "paramRef", field)
		return value
	}
	ref.Namespace, ref.Name = cmp.Or(text("namespace"), ref.Namespace), cmp.Or(text("name"), ref.Name)
	return ref
}
