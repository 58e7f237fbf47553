package graph

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a served kind, under one of its versions. Kinds are compared by group and kind.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name in paths.
	Resource   string
	Namespaced bool
	// Collected: the objects of the kind are in the graph.
	Collected bool
}

// GroupResource returns the resource, as CustomResourceDefinitions are named.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// GroupVersionResource returns the resource in the version of the kind.
func (k *Kind) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// Coordinates are where an object is stored. The namespace of a cluster-scoped kind is "".
type Coordinates struct {
	schema.GroupKind
	Namespace, Name string
}

// Compare compares two resource versions of one kind. Versions that are no integers cannot be
// compared.
func Compare(a, b string) (order int, integers bool) {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	switch {
	case errX != nil || errY != nil:
		return 0, false
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}
