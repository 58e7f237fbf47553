package api

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// explainNamespace returns what the deletion of a namespace waits for. The conditions of the
// namespace are not believed: all kinds are listed.
func explainNamespace(ctx context.Context, e chain.Explorer, namespace *unstructured.Unstructured) []blocker.Blocker {
	found := chain.FinalizerBlockers(ctx, e, namespace)
	finalizers, _, _ := unstructured.NestedStringSlice(namespace.Object, "spec", "finalizers")
	for _, name := range finalizers {
		if name != string(corev1.FinalizerKubernetes) {
			found = append(found, e.Finalizer(ctx, namespace, name))
		}
	}
	if !slices.Contains(finalizers, string(corev1.FinalizerKubernetes)) {
		return found
	}
	content := takeSurvey(ctx, e, namespace.GetName(), "content", isDeletable)
	by := judge(ctx, e, namespace, string(corev1.FinalizerKubernetes))
	unreachable := unreachableAPIs(ctx, e)
	if len(unreachable) > 0 { // they are why kinds are missing
		content.undiscovered = false
	}
	remains := slices.Concat(
		unreachable,
		unlisted(ctx, e, namespace, content),
		contentOf(ctx, e, namespace, content, by),
	)
	if by.Reason == blocker.ControllerGone {
		by.Next = finalizeStep(ctx, e, namespace, len(remains) == 0)
	}
	if by.Verdict == blocker.Stuck || len(remains) == 0 {
		remains = append(remains, by.Blocker)
	}
	return append(found, remains...)
}

// finalizeStep returns the next step without namespace controller. The finalizer in spec is
// removed by hand only if nothing is left.
func finalizeStep(ctx context.Context, e chain.Explorer, namespace *unstructured.Unstructured, empty bool) string {
	family, _ := families.Find(string(corev1.FinalizerKubernetes), "Namespace", "")
	next := e.Holders().LookAll(ctx, family.Controllers(), "").Next
	if !empty {
		return next
	}
	name := namespace.GetName()
	return next + "\n" + cluster.LastResort(family.Force,
		e.Commands().Kubectl("", "get", "namespace", name, "-o",
			`go-template={"apiVersion":"v1","kind":"Namespace","metadata":{"name":"{{.metadata.name}}","resourceVersion":"{{.metadata.resourceVersion}}"}}`)+
			" | "+e.Commands().Kubectl("", "replace", "--raw=/api/v1/namespaces/"+name+"/finalize", "-f", "-"))
}

// isDeletable reports whether the namespace controller deletes objects of the kind.
func isDeletable(r cluster.Resource) bool { return r.Namespaced && slices.Contains(r.Verbs, "delete") }

func contentOf(ctx context.Context, e chain.Explorer, namespace *unstructured.Unstructured, content survey,
	by controller) []blocker.Blocker {
	deleting, others := split(content.items)
	return append(terminating(ctx, e, deleting), notDeleted(e, namespace, others, by)...)
}

// unlisted returns why kinds could not be listed: their conversion fails, or nothing tells.
func unlisted(ctx context.Context, e chain.Explorer, waiting *unstructured.Unstructured,
	content survey) []blocker.Blocker {
	var found []blocker.Blocker
	var rest survey
	rest.undiscovered = content.undiscovered
	for _, resource := range content.missed {
		err := listFailure(e, resource, waiting.GetName())
		failed := conversionFailure(ctx, e, resource.GroupResource(), err)
		if len(failed) == 0 {
			rest.missed = append(rest.missed, resource)
		}
		found = append(found, failed...)
	}
	if rest.isComplete() {
		return found
	}
	return append(found, blocker.Blocker{
		Object: cluster.ObjectOf(waiting), Reason: blocker.ContentRemains, Verdict: blocker.Unknown, Since: askedAt(waiting),
		Evidence: []blocker.Evidence{evidence(blocker.FromList, "could not be listed, and may have objects: %s",
			shortened(rest.missedNames(), 12))},
		Next: cluster.Steps("list these kinds", e.Commands().Kubectl("", "api-resources", "--verbs=list")),
	})
}

// listFailure returns why the list of the kind failed: in the namespace, or in the cluster.
func listFailure(e chain.Explorer, resource cluster.Resource, namespace string) error {
	if err := e.Reader().Failure("list", resource.GroupResource(), namespace); err != nil {
		return err
	}
	return e.Reader().Failure("list", resource.GroupResource(), "")
}
