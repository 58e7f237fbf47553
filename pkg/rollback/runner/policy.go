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

// readPolicy reads the objects of the admission policy. Their order is that of their removal: only the binding
// says where the list of drivers is, and without the list the policy does nothing.
func (s *observation) readPolicy(ctx context.Context) {
	binding := s.readPolicyObject(ctx, policyRefs("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")...)
	all := []Item{}
	// An administrator may have named a ConfigMap that has other readers.
	if list := cluster.DriverList(binding.object); list.Name == deploy.Drivers {
		all = append(all, s.readPolicyObject(ctx, list).items...)
	}
	all = append(all, binding.items...)
	policy := s.readPolicyObject(ctx, policyRefs("MutatingAdmissionPolicy", "mutatingadmissionpolicies")...)
	s.policy.items = append(all, policy.items...)
}

// policyRefs are an object of the admission policy in the versions that API servers serve.
func policyRefs(kind, resource string) []cluster.Ref {
	var all []cluster.Ref
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: version, Resource: resource}
		all = append(all, cluster.Ref{Resource: gvr, Kind: kind, Name: deploy.Policy})
	}
	return all
}

// policyObject is an object of the admission policy, and its removal; nothing if there is no such object.
type policyObject struct {
	object *unstructured.Unstructured
	items  []Item
}

// readPolicyObject reads an object by the first of its versions that is served.
func (s *observation) readPolicyObject(ctx context.Context, refs ...cluster.Ref) policyObject {
	for _, ref := range refs {
		object, presence, _ := s.reader.Live(ctx, ref)
		switch presence {
		case cluster.Unseen:
			s.policy.unread = true
		case cluster.Present:
			remove := func(ctx context.Context) (metav1.Object, error) { return nil, s.deleteObject(ctx, ref, object) }
			return policyObject{object,
				[]Item{newItem(cluster.ObjectOf(object), "", rollback.Decision{Action: rollback.Remove, Reason: rollback.Unneeded},
					remove)}}
		case cluster.Absent:
		}
	}
	return policyObject{}
}

// deleteObject deletes the object that was read, and no other of its name.
func (s *observation) deleteObject(ctx context.Context, ref cluster.Ref, object *unstructured.Unstructured) error {
	return s.reader.Dynamic().Resource(ref.Resource).Namespace(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())},
	})
}
