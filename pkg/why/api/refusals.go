package api

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// target is an object that is being deleted, and how to write to it.
type target struct {
	object  *unstructured.Unstructured
	mapping *meta.RESTMapping
}

// Refusals returns why the API server refuses the writes that end the object's deletion:
// admission, or an invalid object. Without probes admission is read, and at most unknown.
func Refusals(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	t, known := targetOf(e, object)
	if !known {
		return nil
	}
	if e.Probe() && len(object.GetFinalizers()) > 0 && t.isLocal(ctx, e) {
		if found, answered := t.probe(ctx, e); answered {
			return found
		}
	}
	return slices.Concat(t.schemaErrors(ctx, e), t.silentWebhooks(ctx, e))
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
