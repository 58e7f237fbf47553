package refusal_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

// widgetRule covers updates of widgets, or of those with the names.
func widgetRule(names ...string) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{ResourceNames: names, RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{"ex.io"}, APIVersions: []string{"v1"},
			Resources: []string{"widgets"}},
	}}
}

// policyCase changes a policy that covers the write, and tells whether the API server may refuse the write then.
type policyCase struct {
	change func(*refusal.Bound)
	want   bool
}

func policyCases() map[string]policyCase {
	team := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": value}}
	}
	create := widgetRule()
	create.Operations = []admissionv1.OperationType{admissionv1.Create}
	return map[string]policyCase{
		"rule covers the write": {func(*refusal.Bound) {}, true},
		"policy that mutates":   {func(b *refusal.Bound) { b.Validates, b.Actions = false, nil }, true},
		"binding that warns": {func(b *refusal.Bound) {
			b.Actions = []admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit}
		}, false},
		"other operation":        {func(b *refusal.Bound) { b.Constraints.ResourceRules[0] = create }, false},
		"object of the name":     {func(b *refusal.Bound) { b.Constraints.ResourceRules[0] = widgetRule("v", "w") }, true},
		"object of another name": {func(b *refusal.Bound) { b.Constraints.ResourceRules[0] = widgetRule("v") }, false},
		"excluded": {func(b *refusal.Bound) {
			b.Constraints.ExcludeResourceRules = []admissionv1.NamedRuleWithOperations{widgetRule()}
		}, false},
		"other operation is excluded": {func(b *refusal.Bound) {
			b.Constraints.ExcludeResourceRules = []admissionv1.NamedRuleWithOperations{create}
		}, true},
		"namespace is not selected":     {func(b *refusal.Bound) { b.Constraints.NamespaceSelector = team("y") }, false},
		"binding selects the namespace": {func(b *refusal.Bound) { b.Binding = &admissionv1.MatchResources{NamespaceSelector: team("x")} }, true},
		"binding selects another":       {func(b *refusal.Bound) { b.Binding = &admissionv1.MatchResources{NamespaceSelector: team("y")} }, false},
		"binding for another operation": {func(b *refusal.Bound) {
			b.Binding = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{create}}
		}, false},
		"policy without constraints":     {func(b *refusal.Bound) { b.Constraints = nil }, false},
		"policy for other objects alone": {func(b *refusal.Bound) { b.Constraints.ResourceRules[0].Resources = []string{"widgets/status"} }, false},
	}
}

func TestPolicyThatMayRefuse(t *testing.T) {
	write := refusal.Write{
		Operation: admissionv1.Update, Resource: schema.GroupVersionResource{Group: "ex.io", Version: "v1",
			Resource: "widgets"}, Name: "w",
		Namespaced: true, HasNamespace: true, Labels: labels.Set{"app": "a"}, NamespaceLabels: labels.Set{"team": "x"},
	}
	for name, tc := range policyCases() {
		t.Run(name, func(t *testing.T) {
			b := refusal.Bound{
				Constraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{widgetRule()}},
				Validates:   true, Actions: []admissionv1.ValidationAction{admissionv1.Deny},
			}
			tc.change(&b)
			if got := b.MayRefuse(write); got != tc.want {
				t.Errorf("MayRefuse() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPoliciesAreExemptFromPolicies(t *testing.T) {
	everything := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{"*"}, Rule: admissionv1.Rule{APIGroups: []string{"*"},
			APIVersions: []string{"*"}, Resources: []string{"*"}},
	}}}}
	for resource, want := range map[string]bool{
		"validatingadmissionpolicies": false, "mutatingadmissionpolicybindings": false,
		"validatingwebhookconfigurations": true,
	} {
		write := refusal.Write{Operation: admissionv1.Update, Resource: admissionv1.SchemeGroupVersion.WithResource(resource)}
		if got := (refusal.Bound{Constraints: everything}).MayRefuse(write); got != want {
			t.Errorf("%s: MayRefuse() = %v, want %v", resource, got, want)
		}
	}
}
