package status

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// readPolicy reads the admission policy, its binding, and its list of drivers.
func (s *survey) readPolicy(ctx context.Context) {
	_, policy := s.admission(ctx, "MutatingAdmissionPolicy", "mutatingadmissionpolicies")
	bound, binding := s.admission(ctx, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
	s.report.Policy = Policy{State: policy.String(), Bound: binding == cluster.Present, Binding: binding.String(), Drivers: []string{}}
	if policy == cluster.Absent && !s.servesPolicies() {
		s.report.Policy.State = unserved
	}
	if policy != cluster.Present {
		return
	}
	list, listed, _ := s.Reader.Live(ctx, cluster.DriverList(bound))
	s.report.Policy.List = listed.String()
	if list != nil {
		data, _, _ := unstructured.NestedStringMap(list.Object, "data")
		s.report.Policy.Drivers = slices.Sorted(maps.Keys(data))
	}
	if binding == cluster.Absent {
		s.report.find("the admission policy %s has no binding, and so no effect", deploy.Policy)
	}
}

// unserved is the state of the admission policy on API servers before Kubernetes 1.36.
const unserved = "unserved"

// servesPolicies reports whether the API server has a version of MutatingAdmissionPolicy. A group that does not
// answer counts as yes.
func (s *survey) servesPolicies() bool {
	kinds, complete := s.Reader.ServedIn("admissionregistration.k8s.io")
	return !complete || slices.ContainsFunc(kinds, func(r cluster.Resource) bool { return r.Resource == "mutatingadmissionpolicies" })
}

// admission reads an object of the admission policy in the versions that an API server may serve.
func (s *survey) admission(ctx context.Context, kind, resource string) (*unstructured.Unstructured, cluster.Presence) {
	worst := cluster.Absent
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: version, Resource: resource}
		object, presence, _ := s.Reader.Live(ctx, cluster.Ref{Resource: gvr, Kind: kind, Name: deploy.Policy})
		if presence == cluster.Present {
			return object, presence
		}
		if presence == cluster.Unseen {
			worst = cluster.Unseen
		}
	}
	return nil, worst
}
