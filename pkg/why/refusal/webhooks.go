package refusal

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Write is a write to an object.
type Write struct {
	Operation  admissionv1.OperationType
	Resource   schema.GroupVersionResource
	Name       string // of the object
	Namespaced bool
	Labels     labels.Set // of the object
	// NamespaceLabels are the labels of the object's namespace; a Namespace is its own.
	NamespaceLabels labels.Set
	// HasNamespace: the namespace selectors apply, for the object has a namespace or is one.
	HasNamespace bool
	// NamespaceUnseen: the labels of the namespace are not known.
	NamespaceUnseen bool
}

// Hook is what a validating and a mutating webhook have in common.
type Hook struct {
	Name              string
	Rules             []admissionv1.RuleWithOperations
	FailurePolicy     *admissionv1.FailurePolicyType
	MatchPolicy       *admissionv1.MatchPolicyType
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	MatchConditions   []admissionv1.MatchCondition
	Service           *admissionv1.ServiceReference // nil for a URL
}

// MustAnswer reports whether the API server refuses the write unless the webhook answers,
// as far as rules and selectors say. MatchConditions may still exclude the write.
func (h Hook) MustAnswer(w Write) bool {
	ignores := h.FailurePolicy != nil && *h.FailurePolicy == admissionv1.Ignore
	return !ignores && h.Sees(w)
}

// Sees reports whether the API server asks the webhook about the write, as far as rules and selectors
// say. Its denial counts whatever its failurePolicy.
func (h Hook) Sees(w Write) bool {
	exempt := w.Resource.Group == admissionv1.GroupName // such objects are never sent to webhooks
	if exempt || !slices.ContainsFunc(h.Rules,
		func(rule admissionv1.RuleWithOperations) bool { return w.isCovered(rule, h.MatchPolicy) }) {
		return false
	}
	return w.isSelected(h.NamespaceSelector, h.ObjectSelector)
}

// isSelected reports whether the selectors select the namespace and the object. One that cannot be read selects all.
func (w Write) isSelected(namespace, object *metav1.LabelSelector) bool {
	if w.HasNamespace && !w.NamespaceUnseen && !selects(namespace, w.NamespaceLabels) {
		return false
	}
	return selects(object, w.Labels)
}

func (w Write) isCovered(rule admissionv1.RuleWithOperations, match *admissionv1.MatchPolicyType) bool {
	exact := match != nil && *match == admissionv1.Exact
	return containsOrAll(rule.Operations, w.Operation) &&
		containsOrAll(rule.APIGroups, w.Resource.Group) &&
		(!exact || containsOrAll(rule.APIVersions, w.Resource.Version)) && // else any version is converted
		coversScope(rule.Scope, w.Namespaced) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool { return coversResource(pattern, w.Resource.Resource) })
}

func containsOrAll[T ~string](list []T, value T) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

func coversScope(scope *admissionv1.ScopeType, namespaced bool) bool {
	switch {
	case scope == nil || *scope == admissionv1.AllScopes:
		return true
	case *scope == admissionv1.NamespacedScope:
		return namespaced
	default:
		return !namespaced
	}
}

// coversResource reports whether the pattern, such as "pods", "pods/*" or "*/*", covers the
// resource itself, not a subresource alone.
func coversResource(pattern, resource string) bool {
	name, sub, _ := strings.Cut(pattern, "/")
	return (name == "*" || name == resource) && (sub == "" || sub == "*")
}

// selects reports whether the selector selects the labels. A selector that cannot be read
// selects all, as a webhook that may be called counts.
func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || parsed.Matches(set)
}

// DependsOnRequest reports whether the policy may decide differently for the controller's own
// request: one of its expressions reads the user, the options of the request or whether the
// request is a dry run, or asks the authorizer.
func DependsOnRequest(policy *admissionv1.ValidatingAdmissionPolicySpec) bool {
	var expressions []string
	for _, validation := range policy.Validations {
		expressions = append(expressions, validation.Expression)
	}
	for _, variable := range policy.Variables {
		expressions = append(expressions, variable.Expression)
	}
	for _, condition := range policy.MatchConditions {
		expressions = append(expressions, condition.Expression)
	}
	return slices.ContainsFunc(expressions, func(expression string) bool {
		return slices.ContainsFunc(requestParts, func(part string) bool { return strings.Contains(expression, part) })
	})
}

// requestParts are what expressions contain that read more of the request than the object.
var requestParts = []string{"userInfo", "authorizer", "request[", "dryRun", "request.options"}

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
	return included && !slices.ContainsFunc(m.ExcludeResourceRules, covers) &&
		w.isSelected(m.NamespaceSelector, m.ObjectSelector)
}
