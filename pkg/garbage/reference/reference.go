// Package reference says which kind an owner reference names.
package reference

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// KindOf returns the kind that an owner reference names, and false if no API server can serve it. The core group has
// the version v1 alone. Controllers that write a version without its group, or a group without a version, mean a kind
// of another group: the core kind of that name is not the owner.
func KindOf(apiVersion, kind string) (named schema.GroupVersionKind, valid bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Group == "" && gv.Version != "v1" ||
		gv.Version != "v1" && len(validation.IsDNS1035Label(gv.Version)) > 0 {
		return schema.GroupVersionKind{}, false
	}
	return gv.WithKind(kind), true
}

// Names reports whether the kind of a reference names the served kind. As for clients of Kubernetes, the name in lower
// case does, too.
func Names(kind, served schema.GroupKind) bool {
	return kind == served || kind.Group == served.Group && kind.Kind == strings.ToLower(served.Kind)
}
