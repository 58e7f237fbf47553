package api

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/reference"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Unresolvable returns why no garbage collector deletes an object that nobody deleted: the
// kind of an owner is not served, or cannot own the object. It is nil if no reference is so.
func Unresolvable(e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	references := object.GetOwnerReferences()
	if len(references) == 0 {
		return nil
	}
	served, complete := e.Reader().Served()
	var facts []blocker.Evidence
	for _, owner := range references {
		if text := unresolvable(owner, object.GetNamespace(), served, complete); text != "" {
			facts = append(facts, evidence(blocker.FromField, "ownerReferences name %s %s of %s, and %s", owner.Kind, owner.Name, owner.APIVersion, text))
		}
	}
	if len(facts) == 0 {
		return nil
	}
	return []blocker.Blocker{{
		Object: cluster.ObjectOf(object), Reason: blocker.OwnerUnresolvable, Verdict: blocker.None, Evidence: facts,
		Next: cluster.Steps("no garbage collector deletes the object; if its owner is gone, delete the object yourself",
			get(e.Commands(), object.GetNamespace(), resourceWord(e, object), object.GetName(), "-o", "yaml")),
	}}
}

// unresolvable says why the reference proves nothing about its owner, "" if it may.
func unresolvable(owner metav1.OwnerReference, namespace string, served []cluster.Resource, complete bool) string {
	gvk, valid := reference.KindOf(owner.APIVersion, owner.Kind)
	if !valid {
		return "this apiVersion is not valid: a kind outside the core group needs its group and version, such as apps/v1"
	}
	i := slices.IndexFunc(served, func(r cluster.Resource) bool {
		return reference.Names(gvk.GroupKind(), schema.GroupKind{Group: r.Group, Kind: r.Kind})
	})
	switch {
	case i < 0 && complete:
		return "no version of this kind is served"
	case i >= 0 && served[i].Namespaced && namespace == "":
		return "an object without a namespace cannot have an owner in one"
	}
	return ""
}
