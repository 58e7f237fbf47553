package api

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// apiServices is the resource of aggregated APIs.
var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// unreachableAPIs returns a blocker for each aggregated API that is not available: no
// namespace goes while one of them does not answer.
func unreachableAPIs(ctx context.Context, e chain.Explorer) []blocker.Blocker {
	all, _ := e.Reader().Objects(ctx, apiServices, "")
	var found []blocker.Blocker
	for i := range all {
		api := &all[i]
		condition := conditionOf(api, "Available")
		namespace, name, aggregated := serviceOf(api)
		if !aggregated || condition["status"] == "True" || condition == nil {
			continue
		}
		found = append(found, unreachable(e, api, condition, lookAtServer(ctx, e, namespace, name)))
	}
	return found
}

// unreachable returns the blocker of an aggregated API that is not available.
func unreachable(e chain.Explorer, api *unstructured.Unstructured, condition map[string]string,
	behind server) blocker.Blocker {
	commands := append([]string{e.Commands().Kubectl("", "get", "apiservice", api.GetName(), "-o", "yaml")},
		behind.commands(e)...)
	next := cluster.Steps("start the service "+behind.namespace+"/"+behind.name+" of the APIService "+api.GetName(),
		commands...)
	if behind.state.Verdict() == blocker.Stuck {
		next += "\n" + cluster.LastResort("the objects of this API are not deleted, and come back with the API",
			e.Commands().Kubectl("", "delete", "apiservice", api.GetName()))
	}
	return blocker.Blocker{
		Object: cluster.ObjectOf(api), Reason: blocker.APIUnreachable, Verdict: behind.state.Verdict(),
		Holder: "Service " + behind.namespace + "/" + behind.name, Since: condition["lastTransitionTime"],
		Evidence: append([]blocker.Evidence{
			evidence(blocker.FromCondition, "condition Available of APIService %s is %s: %s %s", api.GetName(),
				condition["status"], condition["reason"], condition["message"]),
		}, behind.evidence...),
		Next: next,
	}
}

// serviceOf returns the service behind the APIService, and false for an API that the API
// server serves itself.
func serviceOf(api *unstructured.Unstructured) (namespace, name string, aggregated bool) {
	namespace, _, _ = unstructured.NestedString(api.Object, "spec", "service", "namespace")
	name, _, _ = unstructured.NestedString(api.Object, "spec", "service", "name")
	return namespace, name, name != ""
}

// conditionOf returns the fields of a condition that are text, or nil.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	i := slices.IndexFunc(conditions, func(c any) bool {
		fields, ok := c.(map[string]any)
		return ok && fields["type"] == kind
	})
	if i < 0 {
		return nil
	}
	condition := map[string]string{}
	for key, value := range conditions[i].(map[string]any) {
		if text, ok := value.(string); ok {
			condition[key] = text
		}
	}
	return condition
}
