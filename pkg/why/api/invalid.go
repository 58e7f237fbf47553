package api

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/api/schema"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// schemaErrors returns a blocker if the custom resource is so invalid, in all versions that
// are served, that the API server refuses to remove any of its finalizers.
func (t target) schemaErrors(ctx context.Context, e chain.Explorer) []blocker.Blocker {
	finalizers := t.object.GetFinalizers()
	definition, presence := t.definition(ctx, e)
	if presence != cluster.Present || len(finalizers) == 0 {
		return nil
	}
	var first field.ErrorList
	for _, version := range schema.ServedVersions(definition) {
		object, presence := t.inVersion(ctx, e, version)
		if presence != cluster.Present {
			return nil
		}
		for _, finalizer := range finalizers {
			errs, err := schema.Refusals(ctx, definition, object, finalizer)
			if err != nil || len(errs) == 0 {
				return nil
			}
			if len(first) == 0 {
				first = errs
			}
		}
	}
	if len(first) == 0 {
		return nil
	}
	return []blocker.Blocker{t.objectInvalid(e, evidence(blocker.FromField, "invalid under the schema of %s: %s", definition.GetName(), oneLine(first.ToAggregate())))}
}

// definition reads the definition of the object's kind: absent for built-in kinds.
func (t target) definition(ctx context.Context, e chain.Explorer) (*unstructured.Unstructured, cluster.Presence) {
	if !isDefinedGroup(t.mapping.Resource.Group) {
		return nil, cluster.Absent
	}
	return definitionOf(ctx, e, t.mapping.Resource.GroupResource())
}

// inVersion reads the object in another version.
func (t target) inVersion(ctx context.Context, e chain.Explorer, version string) (*unstructured.Unstructured, cluster.Presence) {
	if version == t.object.GroupVersionKind().Version {
		return t.object, cluster.Present
	}
	object, presence, _ := e.Reader().Live(ctx, cluster.Ref{
		Resource: t.mapping.Resource.GroupResource().WithVersion(version), Kind: t.object.GetKind(),
		Namespace: t.object.GetNamespace(), Name: t.object.GetName(),
	})
	return object, presence
}

// objectInvalid returns the blocker of an object to which no write is taken.
func (t target) objectInvalid(e chain.Explorer, fact blocker.Evidence) blocker.Blocker {
	return blocker.Blocker{
		Object: cluster.ObjectOf(t.object), Reason: blocker.ObjectInvalid, Verdict: blocker.Stuck, Holder: "the API server",
		Since: askedAt(t.object), Evidence: []blocker.Evidence{fact},
		Next: cluster.Steps("correct the fields that are named, or relax their validation in the definition",
			e.Commands().Kubectl(t.object.GetNamespace(), "edit", t.word(), t.object.GetName()),
			e.Commands().Kubectl("", "get", "crd", t.word(), "-o", "yaml")),
	}
}
