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

// Patch is a sequence of operations that take effect together or not at all.
type Patch struct {
	operations []operation
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// For returns a patch that applies to this very object only, by its UID.
func For(object metav1.Object) *Patch {
	return new(Patch).Test("/metadata/uid", string(object.GetUID()))
}

// ForVersion returns a patch that applies to exactly the version of the object
// that was observed. It suits writes whose decision depends on the whole object.
func ForVersion(object metav1.Object) *Patch {
	return For(object).Test("/metadata/resourceVersion", object.GetResourceVersion())
}

// Test makes the patch fail unless the value at path equals value.
func (p *Patch) Test(path string, value any) *Patch {
	return p.append("test", path, value)
}

// Set adds or replaces the value at path.
func (p *Patch) Set(path string, value any) *Patch {
	return p.append("add", path, value)
}

// Remove removes the value at path, which must exist.
func (p *Patch) Remove(path string) *Patch {
	return p.append("remove", path, nil)
}

// Annotate sets annotations. Where the observed object has none, the patch creates the
// map, and rests on the version: it would replace a map that came meanwhile.
func (p *Patch) Annotate(object metav1.Object, annotations map[string]string) *Patch {
	if len(object.GetAnnotations()) == 0 {
		return p.Test("/metadata/resourceVersion", object.GetResourceVersion()).Set("/metadata/annotations", annotations)
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		p.Set("/metadata/annotations/"+Escape(key), annotations[key])
	}
	return p
}

// Empty says whether the patch tests but changes nothing, so that sending it
// would be a write without effect.
func (p *Patch) Empty() bool {
	for _, op := range p.operations {
		if op.Op != "test" {
			return false
		}
	}
	return true
}

// Bytes returns the patch in its JSON form. It fails only for values that have
// no JSON form.
func (p *Patch) Bytes() ([]byte, error) {
	return json.Marshal(p.operations)
}

func (p *Patch) append(op, path string, value any) *Patch {
	p.operations = append(p.operations, operation{Op: op, Path: path, Value: value})
	return p
}

// Escape makes a map key fit to be one step of a JSON pointer (RFC 6901).
func Escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// IsStale says whether a write was refused because the object is no longer as it
// was observed: a failed test of a JSON patch, or a resourceVersion conflict.
func IsStale(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	// A validation error names the fields at fault; a failed test has none.
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
