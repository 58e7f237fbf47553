package runner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// policyRefs are the objects of deploy/admission, in the order of their removal. Older API
// servers serve the same objects in other versions.
func policyRefs() []cluster.Ref {
	var all []cluster.Ref
	for _, kind := range []struct{ kind, resource string }{
		{"MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"}, {"MutatingAdmissionPolicy", "mutatingadmissionpolicies"},
	} {
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
			resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: version, Resource: kind.resource}
			all = append(all, cluster.Ref{Resource: resource, Kind: kind.kind, Name: deploy.Policy})
		}
	}
	config := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return append(all, cluster.Ref{Resource: config, Kind: "ConfigMap", Namespace: deploy.Namespace, Name: deploy.Drivers})
}

// readPolicy reads the objects of the admission policy.
func (s *observation) readPolicy(ctx context.Context) {
	known := map[string]bool{}
	for _, ref := range policyRefs() {
		object, presence, _ := s.reader.Live(ctx, ref)
		switch presence {
		case cluster.Unseen:
			s.policy.unread = true
		case cluster.Present:
			if uid := string(object.GetUID()); !known[uid] {
				known[uid] = true
				remove := func(ctx context.Context) error { return s.deleteObject(ctx, ref, object) }
				s.policy.items = append(s.policy.items, newItem(cluster.ObjectOf(object), "", rollback.Decision{Action: rollback.Remove, Reason: rollback.Unneeded}, remove))
			}
		case cluster.Absent:
		}
	}
}

// deleteObject deletes the object that was read, and no other of its name.
func (s *observation) deleteObject(ctx context.Context, ref cluster.Ref, object *unstructured.Unstructured) error {
	return s.reader.Dynamic().Resource(ref.Resource).Namespace(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())},
	})
}
