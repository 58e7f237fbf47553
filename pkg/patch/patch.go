package patch

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Patch is a sequence of operations that the API server applies all or not at all.
type Patch struct {
	operations []operation
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// For returns a patch that applies only to the object with the UID.
func For(object metav1.Object) *Patch {
	return new(Patch).Test("/metadata/uid", string(object.GetUID()))
}

// ForVersion returns a patch that applies only to the observed version of the object. It is
// for decisions that depend on the whole object.
func ForVersion(object metav1.Object) *Patch {
	return For(object).Test("/metadata/resourceVersion", object.GetResourceVersion())
}

// Test makes the patch fail unless the value at path equals value.
func (p *Patch) Test(path string, value any) *Patch {
	return p.append("test", path, value)
}

// TestDeletion makes the patch fail unless the object is still being deleted, if it was observed so: a restored
// etcd may show the same object as it was before its deletion.
func (p *Patch) TestDeletion(object metav1.Object) *Patch {
	if at := object.GetDeletionTimestamp(); at != nil {
		p.Test("/metadata/deletionTimestamp", at)
	}
	return p
}

// Set adds or replaces the value at path.
func (p *Patch) Set(path string, value any) *Patch {
	return p.append("add", path, value)
}

// Remove removes the value at path, which must exist.
func (p *Patch) Remove(path string) *Patch {
	return p.append("remove", path, nil)
}

// Annotate sets annotations. For an object without annotations the patch creates the map and
// tests the version, as it would replace a map that was added meanwhile.
func (p *Patch) Annotate(object metav1.Object, annotations map[string]string) *Patch {
	if len(object.GetAnnotations()) == 0 {
		return p.Test("/metadata/resourceVersion", object.GetResourceVersion()).Set("/metadata/annotations", annotations)
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		p.Set("/metadata/annotations/"+Escape(key), annotations[key])
	}
	return p
}

// Empty reports whether the patch changes nothing.
func (p *Patch) Empty() bool {
	for _, op := range p.operations {
		if op.Op != "test" {
			return false
		}
	}
	return true
}

// Bytes encodes the patch as JSON. It fails only for values that JSON cannot encode.
func (p *Patch) Bytes() ([]byte, error) {
	return json.Marshal(p.operations)
}

// Effect encodes the changes of the patch without its tests. It fails only for values that JSON cannot encode.
func (p *Patch) Effect() ([]byte, error) {
	return json.Marshal(slices.DeleteFunc(slices.Clone(p.operations), func(o operation) bool { return o.Op == "test" }))
}

func (p *Patch) append(op, path string, value any) *Patch {
	p.operations = append(p.operations, operation{Op: op, Path: path, Value: value})
	return p
}

// escaper has a table of 6 KB, which is built once.
var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Escape escapes a map key as a step of a JSON pointer (RFC 6901).
func Escape(key string) string { return escaper.Replace(key) }

// IsStale reports whether a write failed because the object has changed: a failed test of a
// JSON patch, or a resourceVersion conflict.
func IsStale(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	// A validation error names fields, a failed test does not.
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
