package holder

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// RemovalStep returns the last resort: the removal of one finalizer by hand, as a comment,
// with what is lost; "" if the object does not have the finalizer. It belongs in no step
// while the holder lives or is unseen.
func (f Finder) RemovalStep(object *unstructured.Unstructured, finalizer, loss string) string {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		return ""
	}
	if loss == "" {
		loss = "what the finalizer protects is not known"
	}
	return cluster.LastResort(loss, f.RemovalCommand(object, finalizer))
}

// RemovalCommand returns the command that removes one finalizer of the object. The API
// server refuses it if the object or its finalizers have changed.
func (f Finder) RemovalCommand(object *unstructured.Unstructured, finalizer string) string {
	return f.removalCommand(object, f.ResourceOf(object), finalizer)
}

func (f Finder) removalCommand(object *unstructured.Unstructured, resource, finalizer string) string {
	path := "/metadata/finalizers/" + strconv.Itoa(slices.Index(object.GetFinalizers(), finalizer))
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value,omitempty"`
	}
	patch, err := json.Marshal([]operation{
		{"test", "/metadata/uid", string(object.GetUID())}, {"test", path, finalizer}, {Op: "remove", Path: path},
	})
	if err != nil { // texts always have a JSON form
		return ""
	}
	return f.Commands.Kubectl(object.GetNamespace(), "patch", resource, object.GetName(), "--type=json", "-p", string(patch))
}

// ResourceOf returns the resource of the object as kubectl takes it, with its group.
func (f Finder) ResourceOf(object *unstructured.Unstructured) string {
	if ref, found := f.Reader.Find(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()); found {
		return ref.Resource.GroupResource().String()
	}
	gvk := object.GroupVersionKind()
	return strings.TrimSuffix(strings.ToLower(gvk.Kind)+"."+gvk.Group, ".")
}
