package api

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// definitions is the resource of definitions of custom resources.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitionOf reads the definition of a custom resource.
func definitionOf(ctx context.Context, e chain.Explorer, resource schema.GroupResource) (*unstructured.Unstructured, cluster.Presence) {
	ref := cluster.Ref{Resource: definitions, Kind: "CustomResourceDefinition", Name: resource.String()}
	definition, presence, _ := e.Reader().Live(ctx, ref)
	return definition, presence
}

// conversionFailure returns the blocker of objects that cannot be read because the
// conversion webhook of their definition failed with err; nil for any other error.
func conversionFailure(ctx context.Context, e chain.Explorer, resource schema.GroupResource, err error) []blocker.Blocker {
	status := statusOf(err)
	if refusal.Classify(status) != refusal.ConversionFails {
		return nil
	}
	failed := blocker.Blocker{
		Object: blocker.Object{Kind: "CustomResourceDefinition", Group: definitions.Group, Name: resource.String()},
		Reason: blocker.ConversionFails, Verdict: blocker.Unknown, Holder: "conversion webhook of " + resource.String(),
		Evidence: []blocker.Evidence{evidence(blocker.FromList, "the API server answers: %s", oneLine(err))},
	}
	commands := []string{get(e.Commands(), "", "crd", resource.String(), "-o", "jsonpath={.spec.conversion}")}
	definition, presence := definitionOf(ctx, e, resource)
	if presence == cluster.Present {
		failed.Object = cluster.ObjectOf(definition)
		if namespace, name := conversionService(definition); name != "" {
			behind := lookAtServer(ctx, e, namespace, name)
			failed.Verdict, failed.Holder = behind.state.Verdict(), "Service "+namespace+"/"+name
			failed.Evidence = append(failed.Evidence, behind.evidence...)
			commands = append(commands, behind.commands(e)...)
		}
	}
	failed.Next = cluster.Steps("start the conversion webhook of the definition "+resource.String(), commands...)
	return []blocker.Blocker{failed}
}

// conversionService returns the service of the definition's conversion webhook, or "".
func conversionService(definition *unstructured.Unstructured) (namespace, name string) {
	namespace, _, _ = unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	name, _, _ = unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	return namespace, name
}

// statusOf returns the answer of the API server that the error has.
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}
