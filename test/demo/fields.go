package demo

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// silent are the fields that the API server changes by itself in many writes.
var silent = []string{"metadata.resourceVersion", "metadata.generation", "metadata.managedFields"}

// newChange compares an object before and after a write.
func newChange(before, after *unstructured.Unstructured) *change {
	old, current := flatten(before), flatten(after)
	c := &change{before: before, after: after, open: map[string]bool{}}
	for field, value := range current {
		if old[field] != value {
			c.open[field] = true
		}
	}
	for field := range old {
		if _, left := current[field]; !left {
			c.open[field] = true
		}
	}
	return c
}

// flatten returns the fields of an object as JSON, by path. A list is one field.
func flatten(object *unstructured.Unstructured) map[string]string {
	fields := map[string]string{}
	for _, part := range []string{"metadata", "spec", "status"} {
		if value, there := object.Object[part]; there {
			flattenInto(fields, part, value)
		}
	}
	for _, field := range silent {
		delete(fields, field)
	}
	return fields
}

// flattenInto adds the fields below path.
func flattenInto(fields map[string]string, path string, value any) {
	members, isObject := value.(map[string]any)
	if !isObject {
		text, err := json.Marshal(value)
		if err != nil { // not possible: the value came from JSON
			text = []byte(err.Error())
		}
		fields[path] = string(text)
		return
	}
	for name, member := range members {
		flattenInto(fields, path+"."+name, member)
	}
}

// annotation returns the path of an annotation.
func annotation(name string) string { return "metadata.annotations." + name }

// isDeleting reports whether the object was deleted and still exists.
func isDeleting(object *unstructured.Unstructured) bool { return object.GetDeletionTimestamp() != nil }

// nameObject returns the kind and the name of an object as in kubectl.
func nameObject(object *unstructured.Unstructured) string {
	kinds := map[string]string{"PersistentVolume": "PV", "PersistentVolumeClaim": "PVC"}
	kind := object.GetKind()
	if short, known := kinds[kind]; known {
		kind = short
	}
	return kind + " " + shorten(object.GetName())
}

// listFinalizers returns the noun and the short names of finalizers.
func listFinalizers(finalizers []string) string {
	names := make([]string, 0, len(finalizers))
	for _, name := range finalizers {
		names = append(names, shortenFinalizer(name))
	}
	if len(names) == 1 {
		return "finalizer " + names[0]
	}
	return "finalizers " + join(names)
}

// join joins words by commas and "and".
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// without returns the names that are not in others.
func without(names, others []string) []string {
	var rest []string
	for _, name := range names {
		if !slices.Contains(others, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// sortedKeys returns the keys of a set in order.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
