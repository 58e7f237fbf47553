package api

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// instanceCleanup is the finalizer of definitions whose objects the API server deletes.
const instanceCleanup = "customresourcecleanup.apiextensions.k8s.io"

// explainInstances returns the blocker of a definition whose objects still exist. The API
// server, which answers, deletes them.
func explainInstances(ctx context.Context, e chain.Explorer, definition *unstructured.Unstructured,
	finalizer string) blocker.Blocker {
	resource, served := servedResource(definition)
	found := blocker.Blocker{
		Object: cluster.ObjectOf(definition), Finalizer: finalizer, Reason: blocker.ControllerActs, Verdict: blocker.Waiting,
		Holder: "the API server", Since: askedAt(definition),
		Next: cluster.Steps("wait: the API server removes the finalizer",
			get(e.Commands(), "", "crd", definition.GetName(), "--watch")),
	}
	if condition := conditionOf(definition, "Terminating"); condition != nil {
		found.Evidence = append(found.Evidence, evidence(blocker.FromCondition, "condition Terminating is %s: %s %s",
			condition["status"], condition["reason"], condition["message"]))
	}
	if !served {
		return found
	}
	items, seen := e.Reader().Metadata(ctx, resource.GroupVersionResource, "")
	content := collect([]cluster.Resource{resource}, [][]metav1.PartialObjectMetadata{items}, []bool{seen}, false)
	if !seen {
		found.Reason, found.Verdict = blocker.ContentRemains, blocker.Unknown
		found.Blockers = unlisted(ctx, e, definition, content)
	}
	if len(content.items) == 0 {
		return found
	}
	return withInstances(ctx, e, found, content.items)
}

// withInstances adds the blockers of the objects that remain.
func withInstances(ctx context.Context, e chain.Explorer, found blocker.Blocker, items []item) blocker.Blocker {
	deleting, others := split(items)
	found.Reason = blocker.ContentRemains
	found.Evidence = append(found.Evidence, evidence(blocker.FromList,
		"left of the kind: %s, of which %d are not being deleted yet", terminal.Count(len(items), "object"), len(others)))
	for _, remains := range terminating(ctx, e, deleting) {
		if len(remains.Blockers) == 0 {
			found.Blockers = append(found.Blockers, remains)
		}
		found.Blockers = append(found.Blockers, remains.Blockers...)
	}
	return found
}

// servedResource returns the kind that the definition defines, in its storage version if
// that is served, and false if no version is served.
func servedResource(definition *unstructured.Unstructured) (cluster.Resource, bool) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var served []string
	for _, entry := range list {
		version, _ := entry.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true {
			continue
		}
		if served = append(served, name); version["storage"] == true { // needs no conversion
			served = slices.Insert(served, 0, name)
		}
	}
	if len(served) == 0 {
		return cluster.Resource{}, false
	}
	gvr := schema.GroupVersionResource{Group: group, Version: served[0], Resource: plural}
	return cluster.Resource{GroupVersionResource: gvr, Kind: kind, Namespaced: scope == "Namespaced"}, true
}
