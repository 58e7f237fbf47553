package api

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/reference"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Unresolvable returns why no garbage collector deletes an object that nobody deleted: the
// kind of an owner is not served, or cannot own the object. It is nil if no reference is so.
func Unresolvable(e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	facts := unresolvableOwners(e, object)
	if len(facts) == 0 {
		return nil
	}
	return []blocker.Blocker{{
		Object: cluster.ObjectOf(object), Reason: blocker.OwnerUnresolvable, Verdict: blocker.None, Evidence: facts,
		Next: cluster.Steps("no garbage collector deletes the object. If its owner is gone, delete the object yourself",
			get(e.Commands(), object.GetNamespace(), resourceWord(e, object), object.GetName(), "-o", "yaml")),
	}}
}

// unresolvableOwners returns, as evidence, the owner references of the object that prove nothing.
func unresolvableOwners(e chain.Explorer, object metav1.Object) []blocker.Evidence {
	if len(object.GetOwnerReferences()) == 0 {
		return nil
	}
	var facts []blocker.Evidence
	for _, owner := range object.GetOwnerReferences() {
		gvk, _ := reference.KindOf(owner.APIVersion, owner.Kind)
		served, complete := e.Reader().ServedIn(gvk.Group)
		if text := unresolvable(owner, object.GetNamespace(), served, complete); text != "" {
			facts = append(facts, evidence(blocker.FromField, "ownerReferences name %s %s of %s, and %s", owner.Kind, owner.Name,
				owner.APIVersion, text))
		}
	}
	return facts
}

// keptDependents returns a blocker for each dependent that nobody deleted and that no garbage
// collector deletes: an owner that is deleted in the foreground waits for it for ever.
func keptDependents(e chain.Explorer, owner *unstructured.Unstructured, dependents []item) []blocker.Blocker {
	var kept []blocker.Blocker
	for _, dependent := range dependents {
		facts := unresolvableOwners(e, dependent)
		if len(facts) == 0 || len(kept) == explainedOfGroup {
			continue
		}
		kept = append(kept, blocker.Blocker{
			Object: objectOf(dependent), Reason: blocker.OwnerUnresolvable, Verdict: blocker.Stuck, Since: askedAt(owner),
			Evidence: facts,
			Holder:   "the user of " + objectOf(dependent).String(),
			Next: cluster.Steps("no garbage collector deletes the object, and its owner waits for it: remove the owner reference that cannot be resolved, or delete the object if it is to go",
				get(e.Commands(), dependent.Namespace, dependent.resource.GroupResource().String(), dependent.Name, "-o", "yaml")) +
				"\n" +
				deletion(e.Commands(), dependent),
		})
	}
	return kept
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

// evidence returns one fact.
func evidence(source blocker.Source, format string, values ...any) blocker.Evidence {
	return blocker.Evidence{Source: source, Text: fmt.Sprintf(format, values...)}
}

// askedAt returns when the deletion was requested, "" if it was not.
func askedAt(object metav1.Object) string { return blocker.Time(deadline.Of(object).Requested()) }

// resourceWord returns how kubectl names the kind of the object, such as widgets.example.com.
func resourceWord(e chain.Explorer, object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	if mapping, err := e.Reader().Mapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		return mapping.Resource.GroupResource().String()
	}
	return strings.TrimSuffix(strings.ToLower(gvk.Kind)+"."+gvk.Group, ".")
}

// get returns a command that shows the object.
func get(commands cluster.Commands, namespace, resource, name string, more ...string) string {
	return commands.Kubectl(namespace, append([]string{"get", resource, name}, more...)...)
}

// shortened returns the words in one line, at most limit of them.
func shortened(words []string, limit int) string {
	if len(words) > limit {
		words = append(slices.Clone(words[:limit]), fmt.Sprintf("and %d more", len(words)-limit))
	}
	return strings.Join(words, ", ")
}
