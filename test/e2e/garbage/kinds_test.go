package garbage

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pairs are kinds of an owner and its dependent.
var pairs = []struct {
	name             string
	owner, dependent kind
}{
	{"core owner, custom dependent", configMaps, widgets},
	{"custom owner, core dependent", widgets, secrets},
	{"custom owner, custom dependent of the same kind", widgets, widgets},
	{"custom owner, custom dependent of another group", widgets, otherWidgets},
	{"core owner, dependent of another group", serviceAccounts, leases},
	{"cluster-scoped core owner, namespaced core dependent", classes, secrets},
	{"cluster-scoped core owner, namespaced custom dependent", classes, widgets},
	{"cluster-scoped core owner, cluster-scoped custom dependent", classes, fleets},
	{"cluster-scoped custom owner, namespaced core dependent", fleets, secrets},
	{"cluster-scoped custom owner, namespaced custom dependent", fleets, widgets},
	{"cluster-scoped custom owner, cluster-scoped core dependent", fleets, classes},
	{"cluster-scoped custom owner, cluster-scoped custom dependent", fleets, fleets},
}

// kinds returns a scenario for each pair and policy, and some more.
func kinds() []scenario {
	var all []scenario
	for _, pair := range pairs {
		for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
			all = append(all, scenario{name: fmt.Sprintf("%s, %s", pair.name, policy), run: func(w *world) {
				owner := w.create(pair.owner, "owner")
				w.create(pair.dependent, "dependent", ownedBy(reference(owner)))
				w.delete(pair.owner, "owner", policy)
				w.awaitGone(pair.owner, "owner")
				switch policy {
				case background:
					w.awaitGone(pair.dependent, "dependent")
				case foreground:
					w.expectGone(pair.dependent, "dependent")
				case orphan:
					w.awaitOwners(pair.dependent, "dependent")
					w.expectKept(pair.dependent, "dependent")
				}
			}})
		}
	}
	return append(all, workloads...)
}

// workloads are owners as the controllers of Kubernetes create them.
var workloads = []scenario{
	{name: "deployment, replica set and pod, foreground", run: func(w *world) {
		owner := w.create(deployments, "owner", withTemplate)
		child := w.create(replicaSets, "child", ownedBy(reference(owner)), withTemplate)
		w.create(serviceAccounts, "default") // which pods need
		w.create(pods, "grandchild", ownedBy(reference(child)), withContainers, finalizers(foreign))
		w.delete(deployments, "owner", foreground)
		w.awaitDeleted(pods, "grandchild")
		w.expectWaiting(replicaSets, "child")
		w.expectWaiting(deployments, "owner")
		w.setFinalizers(pods, "grandchild")
		w.awaitGone(deployments, "owner")
		w.expectGone(replicaSets, "child")
	}},
	{name: "deployment, replica set and pod, background", run: func(w *world) {
		owner := w.create(deployments, "owner", withTemplate)
		child := w.create(replicaSets, "child", ownedBy(reference(owner)), withTemplate)
		w.create(serviceAccounts, "default") // which pods need
		w.create(pods, "grandchild", ownedBy(reference(child)), withContainers)
		w.delete(deployments, "owner", background)
		w.awaitGone(replicaSets, "child")
		w.awaitGone(pods, "grandchild")
	}},
	{name: "deployment orphans the replica set, which keeps the pod", run: func(w *world) {
		owner := w.create(deployments, "owner", withTemplate)
		child := w.create(replicaSets, "child", ownedBy(reference(owner)), withTemplate)
		w.create(serviceAccounts, "default") // which pods need
		w.create(pods, "grandchild", ownedBy(reference(child)), withContainers)
		w.delete(deployments, "owner", orphan)
		w.awaitGone(deployments, "owner")
		w.awaitOwners(replicaSets, "child")
		w.awaitOwners(pods, "grandchild", "child")
		w.expectKept(pods, "grandchild")
	}},
	{name: "a namespace is owned by a namespaced object: it stays", run: func(w *world) {
		owner := w.create(configMaps, "owner")
		w.create(namespaces, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", background)
		w.expectKept(namespaces, "dependent")
	}},
	{name: "the namespace of the dependent is its owner", run: func(w *world) {
		owner, err := w.client.Resource(namespaces.GroupVersionResource).Get(w.ctx, w.namespace, metav1.GetOptions{})
		must(w.t, err, "get namespace")
		w.create(secrets, "dependent", ownedBy(reference(owner)), w.absentOwner())
		w.awaitOwners(secrets, "dependent", w.namespace)
		w.expectKept(secrets, "dependent")
	}},
	{name: "three scopes and kinds, foreground", run: func(w *world) {
		owner := w.create(fleets, "owner")
		child := w.create(classes, "child", ownedBy(reference(owner)))
		w.create(widgets, "grandchild", ownedBy(reference(child)), finalizers(foreign))
		w.delete(fleets, "owner", foreground)
		w.awaitDeleted(widgets, "grandchild")
		w.expectWaiting(classes, "child")
		w.expectWaiting(fleets, "owner")
		w.setFinalizers(widgets, "grandchild")
		w.awaitGone(fleets, "owner")
		w.expectGone(classes, "child")
	}},
}
