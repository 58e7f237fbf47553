package garbagecollector

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	serviceKind    = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}

	definitions = &graph.Kind{GroupVersionKind: definitionKind.WithVersion("v1"), Resource: "customresourcedefinitions"}
	services    = &graph.Kind{GroupVersionKind: serviceKind.WithVersion("v1"), Resource: "apiservices"}
	leaseKind   = &graph.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		Resource:         "leases", Namespaced: true,
	}
)

// defines reports whether objects of the kind define other kinds.
func defines(k *graph.Kind) bool {
	return k.GroupKind() == definitionKind || k.GroupKind() == serviceKind
}

// ownGroups are groups of Kubernetes that client-go does not know.
var ownGroups = map[string]bool{definitionKind.Group: true, serviceKind.Group: true}

// isOfKubernetes reports whether the kind is one of Kubernetes itself.
func isOfKubernetes(kind *graph.Kind) bool { return isGroupOfKubernetes(kind.Group) }

func isGroupOfKubernetes(group string) bool {
	return ownGroups[group] || scheme.Scheme.IsGroupRegistered(group)
}

// namesOf returns the names of the resources, in order.
func namesOf(kinds []*graph.Kind) []string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.GroupResource().String()
	}
	slices.Sort(names)
	return names
}

// path returns the path of the object.
func path(object graph.Object) []string {
	segments := []string{"api", object.Kind.Version}
	if object.Kind.Group != "" {
		segments = []string{"apis", object.Kind.Group, object.Kind.Version}
	}
	if object.Namespace != "" {
		segments = append(segments, "namespaces", object.Namespace)
	}
	return append(segments, object.Kind.Resource, object.Name)
}
