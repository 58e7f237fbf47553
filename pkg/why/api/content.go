package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

const (
	// explainedOfGroup is how many objects of one kind with the same finalizers are explained.
	explainedOfGroup = 3
	// explainedGroups is how many groups are explained.
	explainedGroups = 40
)

// group is objects of one kind with the same finalizers, oldest deletion first.
type group []item

// groups sorts the objects that are being deleted into groups, the oldest group first. A
// group shares its blockers, as a rule, so that a few objects are explained for thousands.
func groups(items []item) []group {
	byKey := map[string]group{}
	for _, object := range items {
		key := object.resource.GroupResource().String() + " " + strings.Join(object.Finalizers, " ")
		byKey[key] = append(byKey[key], object)
	}
	var all []group
	for _, members := range byKey {
		slices.SortFunc(members, compareItems)
		all = append(all, members)
	}
	slices.SortFunc(all, func(a, b group) int { return compareItems(a[0], b[0]) })
	return all
}

// compareItems orders objects by the time of their deletion, then by kind and name.
func compareItems(a, b item) int {
	return cmp.Or(
		cmp.Compare(askedAt(a), askedAt(b)), cmp.Compare(a.resource.Kind, b.resource.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// split separates the objects that are being deleted from the others.
func split(items []item) (deleting, others []item) {
	for _, object := range items {
		if object.DeletionTimestamp != nil {
			deleting = append(deleting, object)
		} else {
			others = append(others, object)
		}
	}
	return deleting, others
}

// terminating returns a blocker for each object that is being deleted, with the blockers of
// the object; of large groups for the oldest few.
func terminating(ctx context.Context, e chain.Explorer, items []item) []blocker.Blocker {
	var found []blocker.Blocker
	all := groups(items)
	for _, members := range all[:min(len(all), explainedGroups)] {
		for i, object := range members[:min(len(members), explainedOfGroup)] {
			remains, exists := remaining(ctx, e, object)
			if !exists {
				continue
			}
			if more := len(members) - explainedOfGroup; i == 0 && more > 0 {
				remains.Evidence = append(remains.Evidence, evidence(blocker.FromList,
					"%d more objects of the kind %s with the same finalizers remain", more, object.resource.Kind))
			}
			found = append(found, remains)
		}
	}
	if len(all) > explainedGroups {
		e.Reader().Note("explained the oldest %d of %d groups of objects that are being deleted", explainedGroups, len(all))
	}
	return found
}

// remaining returns the blocker of an object that is being deleted, and false if it is gone.
func remaining(ctx context.Context, e chain.Explorer, object item) (blocker.Blocker, bool) {
	name := object.resource.GroupResource().String()
	remains := blocker.Blocker{
		Object: objectOf(object), Reason: blocker.ContentRemains, Verdict: blocker.Waiting, Since: askedAt(object),
		Evidence: []blocker.Evidence{evidence(blocker.FromList, "%s still exists, and is being deleted since %s",
			objectOf(object), askedAt(object))},
	}
	nested, exists := explained(ctx, e, object.ref())
	remains.Blockers = nested
	sentence := "wait until the object is gone"
	if len(nested) > 0 {
		sentence = "the object is being deleted. What it waits for follows"
	}
	remains.Next = cluster.Steps(sentence, e.Commands().Show(object.Namespace, name, object.Name))
	return remains, exists
}

// explained reads an object live and returns what its deletion waits for, and false if it
// is gone. An object that cannot be read is not gone.
func explained(ctx context.Context, e chain.Explorer, ref cluster.Ref) ([]blocker.Blocker, bool) {
	object, presence, err := e.Reader().Live(ctx, ref)
	switch presence {
	case cluster.Present:
		return e.Explain(ctx, object), true
	case cluster.Absent:
		return nil, false
	case cluster.Unseen: // not gone
	}
	if found := Unreadable(ctx, e, ref, err); len(found) > 0 {
		return found, true
	}
	return []blocker.Blocker{{
		Object: nameOf(ref), Reason: blocker.UnknownFinalizer, Verdict: blocker.Unknown,
		Evidence: []blocker.Evidence{evidence(blocker.FromList, "%s could not be read: %s", nameOf(ref), oneLine(err))},
		Next: cluster.Steps("read the object", e.Commands().Show(ref.Namespace, ref.Resource.GroupResource().String(),
			ref.Name)),
	}}, true
}

// notDeleted returns the blocker of objects that nobody has deleted yet, or nil without any.
func notDeleted(e chain.Explorer, owner *unstructured.Unstructured, items []item, by controller) []blocker.Blocker {
	if len(items) == 0 {
		return nil
	}
	slices.SortFunc(items, compareItems)
	first := items[0]
	return []blocker.Blocker{{
		Object: objectOf(first), Reason: blocker.ContentRemains, Verdict: by.verdictOfWork(), Holder: by.Holder,
		Since: askedAt(owner),
		Evidence: append([]blocker.Evidence{
			evidence(blocker.FromList, "not being deleted yet: %s", shortened(counts(items), 12)),
		}, by.Evidence...),
		Next: waitFor(e.Commands(), by, first) + "\n" + deletion(e.Commands(), first),
	}}
}

// counts returns the number of objects per kind.
func counts(items []item) []string {
	number := map[string]int{}
	var order []string
	for _, object := range items {
		name := object.resource.GroupResource().String()
		if number[name] == 0 {
			order = append(order, name)
		}
		number[name]++
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d %s", number[name], name)
	}
	return order
}

func objectOf(object item) blocker.Object {
	named := nameOf(object.ref())
	named.UID = string(object.UID)
	return named
}

func nameOf(ref cluster.Ref) blocker.Object {
	return blocker.Object{Kind: ref.Kind, Group: ref.Resource.Group, Namespace: ref.Namespace, Name: ref.Name}
}

func oneLine(err error) string { return strings.Join(strings.Fields(fmt.Sprint(err)), " ") }

// Chains returns the chains of the kinds of this package.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{
		{Kind: "Namespace"}: explainNamespace,
	}
}

// Finalizers returns the chains of finalizers that objects of any kind may have.
func Finalizers() map[string]chain.FinalizerChain {
	chains := map[string]chain.FinalizerChain{
		metav1.FinalizerDeleteDependents: explainForeground,
		metav1.FinalizerOrphanDependents: explainOrphan,
		instanceCleanup:                  explainInstances,
	}
	for _, name := range applicationFinalizers {
		chains[name] = explainApplication
	}
	return chains
}

// Unreadable returns why an object cannot be read, if the answer of the API server proves
// that it exists: its stored bytes are damaged, or its conversion fails. It returns nil for
// any other error, such as a missing right.
func Unreadable(ctx context.Context, e chain.Explorer, ref cluster.Ref, err error) []blocker.Blocker {
	if failed := conversionFailure(ctx, e, ref.Resource.GroupResource(), err); failed != nil {
		return failed
	}
	if refusal.Classify(statusOf(err)) != refusal.Damaged {
		return nil
	}
	resource := ref.Resource.GroupResource().String()
	return []blocker.Blocker{{
		Object: nameOf(ref), Reason: blocker.ObjectUnreadable, Verdict: blocker.Stuck, Holder: "the API server",
		Evidence: []blocker.Evidence{evidence(blocker.FromField, "the API server answers: %s", oneLine(err))},
		Next: cluster.Steps("put the key that encrypted the object back into the encryption configuration of all API servers, then try again",
			get(e.Commands(), ref.Namespace, resource, ref.Name)) + "\n" +
			cluster.LastResort("the object is lost, and whatever it protects stays behind. This needs the gate AllowUnsafeMalformedObjectDeletion",
				forceDeletion+" | "+e.Commands().Kubectl("", "delete", "--raw="+path(ref), "-f", "-")),
	}}
}

// forceDeletion prints the options that delete an object without reading it.
const forceDeletion = `echo '{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}'`

// path returns the path of the object in the API.
func path(ref cluster.Ref) string {
	root := "/apis/" + ref.Resource.Group
	if ref.Resource.Group == "" {
		root = "/api"
	}
	root += "/" + ref.Resource.Version
	if ref.Namespace != "" {
		root += "/namespaces/" + ref.Namespace
	}
	return root + "/" + ref.Resource.Resource + "/" + ref.Name
}

// definitions is the resource of definitions of custom resources.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// definitionOf reads the definition of a custom resource.
func definitionOf(ctx context.Context, e chain.Explorer,
	resource schema.GroupResource) (*unstructured.Unstructured, cluster.Presence) {
	ref := cluster.Ref{Resource: definitions, Kind: "CustomResourceDefinition", Name: resource.String()}
	definition, presence, _ := e.Reader().Live(ctx, ref)
	return definition, presence
}

// conversionFailure returns the blocker of objects that cannot be read because the
// conversion webhook of their definition failed with err; nil for any other error.
func conversionFailure(ctx context.Context, e chain.Explorer, resource schema.GroupResource,
	err error) []blocker.Blocker {
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
	namespace, _, _ = unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig",
		"service", "namespace")
	name, _, _ = unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service",
		"name")
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
