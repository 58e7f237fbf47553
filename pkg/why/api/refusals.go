package api

import (
	"context"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/api/schema"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// target is an object that is being deleted, and how to write to it.
type target struct {
	object  *unstructured.Unstructured
	mapping *meta.RESTMapping
}

// Refusals returns why the API server refuses the writes that end the object's deletion:
// admission, or an invalid object. Without probes and events admission is read, and at most unknown.
func Refusals(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	t, known := targetOf(e, object)
	if !known {
		return nil
	}
	answered := false
	if e.Probe() && len(object.GetFinalizers()) > 0 && t.isLocal(ctx, e) {
		var found []blocker.Blocker
		if found, answered = t.probe(ctx, e); len(found) > 0 {
			return found
		}
	}
	if found := t.reported(ctx, e, answered); len(found) > 0 || answered {
		return found
	}
	return slices.Concat(t.schemaErrors(ctx, e), t.silentWebhooks(ctx, e))
}

// writeRefused is the reason of the event with which a controller of Exeunt reports a refused write.
const writeRefused = "WriteRefused"

// removal is the beginning of a report that a finalizer cannot be removed.
var removal = regexp.MustCompile(`^Removing the finalizer (\S+) failed`)

// isOver reports whether the write of the report has succeeded since, as the object shows, or whether it was refused for
// a missing right: that is no admission, and the controller's own state tells.
func (t target) isOver(message string) bool {
	if found := removal.FindStringSubmatch(message); found != nil && !slices.Contains(t.object.GetFinalizers(), found[1]) {
		return true
	}
	return strings.Contains(message, ` is forbidden: User "`) || strings.Contains(message, ": Unauthorized")
}

// reported returns the blocker of a write of which a controller of Exeunt reports now that it is refused or undone. A
// webhook may have been mended since: that a probe passes makes it unknown.
func (t target) reported(ctx context.Context, e chain.Explorer, probed bool) []blocker.Blocker {
	events, _ := cluster.EventsOf(ctx, e.Reader(), t.object.GetKind(), t.object)
	asked := deadline.Of(t.object).Requested()
	events = slices.DeleteFunc(events, func(event corev1.Event) bool {
		at := cluster.EventTime(event)
		return event.Reason != writeRefused || at.Before(asked) ||
			e.Reader().Now().Sub(at) > holder.FreshError || t.isOver(event.Message)
	})
	if len(events) == 0 {
		return nil
	}
	last := events[len(events)-1]
	fact := evidence(blocker.FromEvent, "%s of %s, last at %s: %s", last.Reason, cluster.Component(&last),
		blocker.Time(cluster.EventTime(last)), strings.Join(strings.Fields(last.Message), " "))
	found, known := t.refused(ctx, e, fact, metav1.Status{Message: last.Message})
	switch {
	case !known:
		found.Reason, found.Holder = blocker.AdmissionDenies, "the API server"
		found.Next = cluster.Steps("mend what refuses or undoes the write, as the message says",
			e.Commands().Kubectl(t.object.GetNamespace(), "describe", t.word(), t.object.GetName()))
	case found.Reason == blocker.AdmissionDenies: // to the controller itself, not in a dry run
		found.Verdict, found.Evidence = blocker.Stuck, []blocker.Evidence{fact}
	}
	if probed {
		found.Verdict = blocker.Unknown
	}
	return []blocker.Blocker{found}
}

// targetOf returns how to write to the object, and false if its kind is not known.
func targetOf(e chain.Explorer, object *unstructured.Unstructured) (target, bool) {
	gvk := object.GroupVersionKind()
	mapping, err := e.Reader().Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	return target{object, mapping}, err == nil
}

// isLocal reports whether the API server itself stores the object. An aggregated API may
// not know dry runs.
func (t target) isLocal(ctx context.Context, e chain.Explorer) bool {
	gv := t.mapping.GroupVersionKind.GroupVersion()
	if gv.Group == "" {
		return true
	}
	ref := cluster.Ref{Resource: apiServices, Kind: "APIService", Name: gv.Version + "." + gv.Group}
	api, presence, _ := e.Reader().Live(ctx, ref)
	if presence != cluster.Present {
		e.Reader().Note("not probed: whether %s is an aggregated API was not seen", gv)
		return false
	}
	_, _, aggregated := serviceOf(api)
	if aggregated {
		e.Reader().Note("not probed: %s is an aggregated API, which may not know dry runs", gv)
	}
	return !aggregated
}

// word returns how kubectl names the kind.
func (t target) word() string { return t.mapping.Resource.GroupResource().String() }

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
	return []blocker.Blocker{t.objectInvalid(e, evidence(blocker.FromField, "invalid under the schema of %s: %s",
		definition.GetName(), oneLine(first.ToAggregate())))}
}

// definition reads the definition of the object's kind: absent for built-in kinds.
func (t target) definition(ctx context.Context, e chain.Explorer) (*unstructured.Unstructured, cluster.Presence) {
	if !IsDefinedGroup(t.mapping.Resource.Group) {
		return nil, cluster.Absent
	}
	return definitionOf(ctx, e, t.mapping.Resource.GroupResource())
}

// inVersion reads the object in another version.
func (t target) inVersion(ctx context.Context, e chain.Explorer,
	version string) (*unstructured.Unstructured, cluster.Presence) {
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
