package refusal

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Bound is an admission policy with one of its bindings.
type Bound struct {
	// Constraints are those of the policy, Binding those of the binding; nil for none.
	Constraints, Binding *admissionv1.MatchResources
	// Validates: the policy validates. Actions are what its binding does with what is not valid.
	Validates bool
	Actions   []admissionv1.ValidationAction
}

// MayRefuse reports whether the API server may refuse or change the write because of the policy, as far as rules
// and selectors say: conditions and expressions are not evaluated.
func (b Bound) MayRefuse(w Write) bool {
	if isPolicy(w) || b.Constraints == nil || b.Validates && !slices.Contains(b.Actions, admissionv1.Deny) {
		return false
	}
	return w.matches(b.Constraints) && (b.Binding == nil || w.matches(b.Binding))
}

// isPolicy reports whether the object is a policy or a binding: no policy applies to those.
func isPolicy(w Write) bool {
	return w.Resource.Group == admissionv1.GroupName && strings.Contains(w.Resource.Resource, "admissionpolic")
}

// matches reports whether the constraints match the write. Without rules they match all.
func (w Write) matches(m *admissionv1.MatchResources) bool {
	covers := func(rule admissionv1.NamedRuleWithOperations) bool {
		named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, w.Name)
		return named && w.isCovered(rule.RuleWithOperations, m.MatchPolicy)
	}
	included := len(m.ResourceRules) == 0 || slices.ContainsFunc(m.ResourceRules, covers)
	return included && !slices.ContainsFunc(m.ExcludeResourceRules, covers) && w.isSelected(m.NamespaceSelector, m.ObjectSelector)
}
