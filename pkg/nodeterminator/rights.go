package nodeterminator

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// right is what the program needs to be allowed, and what happens without.
type right struct {
	verb      string
	resource  schema.GroupResource
	namespace string
	without   string
}

// rights are those of the program, whose reports are in the namespace.
func rights(namespace string) []right {
	pods, nodes := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "nodes"}
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	reports := schema.GroupResource{Resource: "configmaps"}
	attachments := schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}
	single := []right{
		{"patch", nodes, "", "no node is served"},
		{"get", nodes, "", "no machine is stopped and no node released"},
		{"delete", nodes, "", "the Node of a NodeClaim that is deleted stays"},
		{"delete", pods, "", "pods that a budget protects outlive the deadline, until their machine is off"},
		{"create", schema.GroupResource{Resource: "pods/eviction"}, "", "pods are deleted at the deadline only"},
		{"patch", schema.GroupResource{Resource: "pods/status"}, "", "deleted pods have no condition DisruptionTarget"},
		{"get", leases, "kube-node-lease", "no machine is proven to be off"},
		{"create", reports, namespace, "terminations have no reports"},
		{"patch", reports, namespace, "terminations have no reports"},
		{"get", reports, namespace, "reports forget what an earlier leader counted"},
	}
	return slices.Concat(single,
		watched(nodes, "", "no node is served"),
		watched(attachments, "", "no node is served"),
		watched(schema.GroupResource{Resource: "persistentvolumes"}, "", "no node is served"),
		watched(pods, "", "no node is drained"),
		watched(budgets, "", "evictions are tried each 5 s"),
		watched(schema.GroupResource{Resource: "namespaces"}, "", "pods of a namespace that is being deleted are evicted before L"),
		watched(leases, "kube-node-lease", "no machine is proven to be off"))
}

// watched are the rights that a cache needs.
func watched(resource schema.GroupResource, namespace, without string) []right {
	return []right{{"list", resource, namespace, without}, {"watch", resource, namespace, without}}
}

// Missing is a right that the program does not have.
type Missing struct{ Verb, Resource, Namespace, Without string }

// MissingRights asks the API server which rights the program lacks.
func MissingRights(ctx context.Context, client kubernetes.Interface, namespace string) ([]Missing, error) {
	var missing []Missing
	for _, r := range rights(namespace) {
		may, err := controller.May(ctx, client, r.verb, r.resource, r.namespace)
		if err != nil {
			return nil, err
		}
		if !may {
			missing = append(missing, Missing{r.verb, r.resource.String(), r.namespace, r.without})
		}
	}
	return missing, nil
}
