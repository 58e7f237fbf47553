package api

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// policyKind is a kind of admission policies, with the kind of its bindings.
type policyKind struct{ kind, resource, bindings string }

var policyKinds = []policyKind{
	{"ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	{"MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
}

// policySpec are the fields that the policies of both kinds, and their bindings, have in common.
type policySpec struct {
	PolicyName        string                         `json:"policyName"`
	MatchConstraints  *admissionv1.MatchResources    `json:"matchConstraints"`
	MatchResources    *admissionv1.MatchResources    `json:"matchResources"`
	ValidationActions []admissionv1.ValidationAction `json:"validationActions"`
}

// policies returns the admission policies that see the write and may refuse or change it, and the kinds of policies
// that the API server does not serve. What could not be listed is noted.
func (t target) policies(ctx context.Context, e chain.Explorer) (names, unserved []string) {
	write := t.write(ctx, e)
	served, complete := e.Reader().ServedIn(admissionv1.GroupName)
	for _, kind := range policyKinds {
		policies, has := specsOf(ctx, e, served, kind.resource)
		if !has {
			if complete {
				unserved = append(unserved, kind.kind)
			}
			continue
		}
		if len(policies) == 0 {
			continue // bindings alone refuse nothing
		}
		bindings, _ := specsOf(ctx, e, served, kind.bindings)
		for _, policy := range policies {
			if slices.ContainsFunc(bindings, func(b namedSpec) bool { return kind.mayRefuse(policy, b, write) }) {
				names = append(names, kind.kind+" "+policy.name)
			}
		}
	}
	return names, unserved
}

// ours are the policies of Exeunt: none refuses or changes the removal of a finalizer by its controller.
var ours = []string{"MutatingAdmissionPolicy " + deploy.Policy, "ValidatingAdmissionPolicy " + deploy.AlivePolicy,
	"ValidatingAdmissionPolicy " + teardown.FreezeName}

// mayRefuse reports whether the policy may refuse or change the write by the binding.
func (k policyKind) mayRefuse(policy, binding namedSpec, write refusal.Write) bool {
	return !slices.Contains(ours, k.kind+" "+policy.name) && binding.PolicyName == policy.name && refusal.Bound{
		Constraints: policy.MatchConstraints, Binding: binding.MatchResources,
		Validates: k.kind == "ValidatingAdmissionPolicy", Actions: binding.ValidationActions,
	}.MayRefuse(write)
}

// namedSpec is the spec of a policy or binding with its name.
type namedSpec struct {
	policySpec
	name string
}

// specsOf lists the policies or bindings of the resource, in the version that is served, and reports whether one is.
func specsOf(ctx context.Context, e chain.Explorer, served []cluster.Resource,
	resource string) (specs []namedSpec, has bool) {
	i := slices.IndexFunc(served, func(r cluster.Resource) bool { return r.Resource == resource })
	if i < 0 {
		return nil, false
	}
	objects, _ := e.Reader().Objects(ctx, served[i].GroupVersionResource, "")
	for _, object := range objects {
		one := namedSpec{name: object.GetName()}
		fields, _, _ := unstructured.NestedMap(object.Object, "spec")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &one.policySpec); err != nil {
			e.Reader().Note("could not read %s %s: %v", resource, one.name, err)
			continue
		}
		specs = append(specs, one)
	}
	return specs, true
}
