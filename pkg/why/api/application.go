package api

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// applicationFinalizers are set on Applications of Argo CD that are deleted with their
// resources.
var applicationFinalizers = []string{
	"resources-finalizer.argocd.argoproj.io",
	"resources-finalizer.argocd.argoproj.io/background",
	"resources-finalizer.argocd.argoproj.io/foreground",
}

// explainApplication returns what the deletion of an Argo CD Application waits for: the
// objects that status.resources names, then the application controller.
func explainApplication(ctx context.Context, e chain.Explorer, application *unstructured.Unstructured,
	finalizer string) blocker.Blocker {
	by := judge(ctx, e, application, finalizer)
	children, unseen := childrenOf(ctx, e, application)
	switch {
	case len(children) == 0 && len(unseen) > 0:
		found := childrenUnseen(application, unseen)
		found.Finalizer = finalizer
		if by.Verdict == blocker.Stuck {
			found.Blockers = []blocker.Blocker{by.Blocker}
		}
		return found
	case len(children) == 0:
		return by.Blocker
	}
	deleting, others := split(children)
	slices.SortFunc(children, compareItems)
	first := children[0]
	found := blocker.Blocker{
		Object: objectOf(first), Finalizer: finalizer, Reason: blocker.DependentsRemain, Verdict: blocker.Waiting,
		Holder: by.Holder, Since: askedAt(application),
		Evidence: []blocker.Evidence{evidence(blocker.FromField,
			"status.resources of the application names objects that exist: %s", shortened(names(children), 8))},
		Next: cluster.Steps("the objects of the application have to go first. What they wait for follows",
			e.Commands().Show(first.Namespace, first.resource.GroupResource().String(), first.Name)),
	}
	if len(others) > 0 { // the controller has not deleted them yet
		text := shortened(counts(others), 8)
		found.Evidence = append(found.Evidence, evidence(blocker.FromList, "not being deleted yet: %s", text))
		found.Blockers = append(found.Blockers, by.Blocker)
	}
	for _, remains := range terminating(ctx, e, deleting) {
		found.Blockers = append(found.Blockers, remains.Blockers...)
	}
	if len(unseen) > 0 {
		found.Blockers = append(found.Blockers, childrenUnseen(application, unseen))
	}
	if by.Verdict == blocker.Stuck && len(others) == 0 {
		found.Blockers = append(found.Blockers, by.Blocker)
	}
	return found
}

// childrenUnseen returns the blocker of an application with objects that could not be read.
func childrenUnseen(application *unstructured.Unstructured, unseen []string) blocker.Blocker {
	return blocker.Blocker{
		Object: cluster.ObjectOf(application), Reason: blocker.DependentsUnseen, Verdict: blocker.Unknown,
		Since: askedAt(application),
		Evidence: []blocker.Evidence{evidence(blocker.FromField,
			"status.resources of the application names objects that could not be read: %s", shortened(unseen, 8))},
		Next: cluster.Steps("read these objects, with the rights that the lines incomplete name"),
	}
}

// childrenOf returns the objects that status.resources names and that exist, and the names of
// those that could not be read. Objects of another cluster are not looked for.
func childrenOf(ctx context.Context, e chain.Explorer,
	application *unstructured.Unstructured) (children []item, unseen []string) {
	server, _, _ := unstructured.NestedString(application.Object, "spec", "destination", "server")
	name, _, _ := unstructured.NestedString(application.Object, "spec", "destination", "name")
	if server != "" && server != "https://kubernetes.default.svc" || server == "" && name != "" && name != "in-cluster" {
		e.Reader().Note("the application %s/%s deploys to another cluster, whose objects are not seen",
			application.GetNamespace(), application.GetName())
		return nil, nil
	}
	list, _, _ := unstructured.NestedSlice(application.Object, "status", "resources")
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		found, presence := child(ctx, e, fields)
		switch presence {
		case cluster.Present:
			children = append(children, found)
		case cluster.Unseen:
			unseen = append(unseen, fmt.Sprintf("%v %v", fields["kind"], fields["name"]))
		case cluster.Absent:
		}
	}
	return children, unseen
}

// child returns the object that an entry of status.resources names, if it exists.
func child(ctx context.Context, e chain.Explorer, fields map[string]any) (item, cluster.Presence) {
	text := func(key string) string { value, _ := fields[key].(string); return value }
	apiVersion := schema.GroupVersion{Group: text("group"), Version: text("version")}.String()
	ref, known := e.Reader().Find(apiVersion, text("kind"), text("namespace"), text("name"))
	if !known {
		if _, complete := e.Reader().ServedIn(text("group")); complete { // a kind that is not served has no objects
			return item{}, cluster.Absent
		}
		e.Reader().Note("could not find the kind %s of %s, which belongs to the application", text("kind"), apiVersion)
		return item{}, cluster.Unseen
	}
	objects, seen := e.Reader().Metadata(ctx, ref.Resource, ref.Namespace)
	resource := cluster.Resource{GroupVersionResource: ref.Resource, Kind: ref.Kind, Namespaced: ref.Namespace != ""}
	for i := range objects {
		if objects[i].Name == ref.Name {
			return item{&objects[i], resource}, cluster.Present
		}
	}
	if !seen {
		return item{}, cluster.Unseen
	}
	return item{}, cluster.Absent
}
