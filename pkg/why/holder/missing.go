package holder

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// The kinds of what an installation needs.
var needKinds = []cluster.Ref{
	{Kind: "CustomResourceDefinition", Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}},
	{Kind: "ValidatingWebhookConfiguration", Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io",
		Version: "v1", Resource: "validatingwebhookconfigurations"}},
	{Kind: "MutatingWebhookConfiguration", Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io",
		Version: "v1", Resource: "mutatingwebhookconfigurations"}},
}

// missingNeed returns a sentence about something that every installation of the controller
// has and that is provably absent here, or "".
func (f Finder) missingNeed(ctx context.Context, controller families.Controller) string {
	for _, name := range controller.Needs {
		objects, seen := f.need(ctx, name)
		if len(objects) == 0 && seen {
			return "no definition and no webhook configuration " + name + " exists, which every installation of " +
				controller.Name + " has"
		}
		for _, object := range objects {
			if namespace := f.goneNamespace(ctx, object); namespace != "" {
				return cluster.ObjectOf(object).String() + " calls a service in namespace " + namespace + ", which does not exist"
			}
		}
	}
	return ""
}

// need returns the definitions and webhook configurations of the name, and whether each kind
// could be read.
func (f Finder) need(ctx context.Context, name string) (objects []*unstructured.Unstructured, seen bool) {
	seen = true
	for _, ref := range needKinds {
		ref.Name = name
		object, presence, _ := f.Reader.Live(ctx, ref)
		seen = seen && presence != cluster.Unseen
		if presence == cluster.Present {
			objects = append(objects, object)
		}
	}
	return objects, seen
}

// goneNamespace returns the namespace of a service that the object calls, if that namespace
// does not exist, or "".
func (f Finder) goneNamespace(ctx context.Context, object *unstructured.Unstructured) string {
	for _, namespace := range serviceNamespaces(object) {
		if _, presence := cluster.Get(ctx, f.Reader, cluster.Namespaces, "", namespace); presence == cluster.Absent {
			return namespace
		}
	}
	return ""
}

// serviceNamespaces returns the namespaces of the services that a webhook configuration or
// the conversion of a definition calls.
func serviceNamespaces(object *unstructured.Unstructured) []string {
	var namespaces []string
	if namespace, found, _ := unstructured.NestedString(object.Object, "spec", "conversion", "webhook", "clientConfig",
		"service", "namespace"); found {
		namespaces = append(namespaces, namespace)
	}
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		if namespace, found, _ := unstructured.NestedString(fields, "clientConfig", "service", "namespace"); found {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}
