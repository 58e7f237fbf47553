package finalizer

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Change names the finalizers to add and to remove in one write.
type Change struct {
	Add, Remove []Name
}

// Edit appends to p the operations that change the finalizers of the observed object.
// Finalizers of others, additions of present and removals of absent finalizers are ignored;
// p is unchanged if nothing remains. The patch fails as stale if the list has changed.
func Edit(p *patch.Patch, object metav1.Object, change Change) *patch.Patch {
	before := object.GetFinalizers()
	after := change.apply(before)
	if slices.Equal(before, after) {
		return p
	}
	const path = "/metadata/finalizers"
	if len(before) == 0 {
		// A JSON patch cannot test that a field is absent.
		return p.Test("/metadata/resourceVersion", object.GetResourceVersion()).Set(path, after)
	}
	p.Test(path, before)
	if len(after) == 0 {
		return p.Remove(path)
	}
	return p.Set(path, after)
}

func (c Change) apply(list []string) []string {
	for _, name := range c.Remove {
		if _, ours := holders[name]; ours {
			list = Without(list, name)
		}
	}
	for _, name := range c.Add {
		if _, ours := holders[name]; ours {
			list = With(list, name)
		}
	}
	return list
}
