package refusal_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/refusal"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) { enumtest.ExpectNames(t, refusal.Unclear, refusal.ConversionFails) }

// TestClassify has messages as kube-apiserver v1.36.3 writes them.
func TestClassify(t *testing.T) {
	for message, tc := range map[string]struct {
		code   int32
		reason metav1.StatusReason
		want   refusal.Kind
	}{
		`Internal error occurred: failed calling webhook "a.ex.io": failed to call webhook: Post "https://a.ns.svc:443/?timeout=10s": service "a" not found`: {500, metav1.StatusReasonInternalError, refusal.WebhookUnreachable},
		`admission webhook "a.ex.io" denied the request: no`:                                                             {403, "", refusal.WebhookDenies},
		`configmaps "x" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: stays`:        {422, metav1.StatusReasonInvalid, refusal.PolicyDenies},
		`admission webhook "a.ex.io" does not support dry run`:                                                           {400, metav1.StatusReasonBadRequest, refusal.NoDryRun},
		`The A "x" is invalid: spec: Required value`:                                                                     {422, metav1.StatusReasonInvalid, refusal.SchemaViolated},
		`Internal error occurred: no matching key was found for the provided AES transformer`:                            {500, metav1.StatusReasonInternalError, refusal.Damaged},
		`Internal error occurred: no matching prefix found`:                                                              {500, metav1.StatusReasonInternalError, refusal.Damaged},
		`Internal error occurred: failed to decrypt DEK, error: rpc error: code = Unavailable desc = connection refused`: {500, metav1.StatusReasonInternalError, refusal.Unclear},
		`no matching prefix found`: {403, metav1.StatusReasonForbidden, refusal.Unclear},
		`conversion webhook for ex.io/v1, Kind=Conv failed: Post "https://conv.default.svc:443/?timeout=30s": service "conv" not found`: {500, "", refusal.ConversionFails},
		`configmaps "x" is forbidden: User "me" cannot patch resource "configmaps"`:                                                     {403, metav1.StatusReasonForbidden, refusal.Unclear},
		`etcdserver: request timed out`: {500, "", refusal.Unclear},
		`the object has been modified`:  {409, metav1.StatusReasonConflict, refusal.Unclear},
	} {
		if got := refusal.Classify(metav1.Status{Message: message, Code: tc.code, Reason: tc.reason}); got != tc.want {
			t.Errorf("Classify(%q) = %v, want %v", message, got, tc.want)
		}
	}
}

func TestNamesInMessages(t *testing.T) {
	if got := refusal.Policy(`ValidatingAdmissionPolicy 'keep' with binding 'b' denied request: no`); got != "keep" {
		t.Errorf("Policy() = %q", got)
	}
	if got := refusal.Webhook(`failed calling webhook "a.ex.io": no`); got != "a.ex.io" {
		t.Errorf("Webhook() = %q", got)
	}
	if refusal.Policy("no") != "" || refusal.Webhook(`webhook "cut`) != "" {
		t.Error("a message without a name has a name")
	}
}

func hook(change func(*refusal.Hook)) refusal.Hook {
	h := refusal.Hook{Rules: []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{"ex.io"}, APIVersions: []string{"v1"},
			Resources: []string{"widgets"}},
	}}}
	change(&h)
	return h
}

func TestMustAnswer(t *testing.T) {
	write := refusal.Write{
		Operation: admissionv1.Update, Resource: schema.GroupVersionResource{Group: "ex.io", Version: "v1",
			Resource: "widgets"},
		Namespaced: true, HasNamespace: true, Labels: labels.Set{"app": "a"}, NamespaceLabels: labels.Set{"team": "x"},
	}
	selector := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	for name, tc := range map[string]struct {
		change func(*refusal.Hook)
		want   bool
	}{
		"rule covers the write":      {func(*refusal.Hook) {}, true},
		"policy Ignore":              {func(h *refusal.Hook) { h.FailurePolicy = new(admissionv1.Ignore) }, false},
		"policy Fail":                {func(h *refusal.Hook) { h.FailurePolicy = new(admissionv1.Fail) }, true},
		"other operation":            {func(h *refusal.Hook) { h.Rules[0].Operations = []admissionv1.OperationType{admissionv1.Create} }, false},
		"all operations":             {func(h *refusal.Hook) { h.Rules[0].Operations = []admissionv1.OperationType{"*"} }, true},
		"other group":                {func(h *refusal.Hook) { h.Rules[0].APIGroups = []string{""} }, false},
		"other version, converted":   {func(h *refusal.Hook) { h.Rules[0].APIVersions = []string{"v1alpha1"} }, true},
		"other version, exact":       {func(h *refusal.Hook) { h.Rules[0].APIVersions, h.MatchPolicy = []string{"v2"}, new(admissionv1.Exact) }, false},
		"subresource alone":          {func(h *refusal.Hook) { h.Rules[0].Resources = []string{"widgets/status"} }, false},
		"all resources":              {func(h *refusal.Hook) { h.Rules[0].Resources = []string{"*/*"} }, true},
		"cluster scope":              {func(h *refusal.Hook) { h.Rules[0].Scope = new(admissionv1.ClusterScope) }, false},
		"namespaced scope":           {func(h *refusal.Hook) { h.Rules[0].Scope = new(admissionv1.NamespacedScope) }, true},
		"object selector fits":       {func(h *refusal.Hook) { h.ObjectSelector = selector("app", "a") }, true},
		"object selector excludes":   {func(h *refusal.Hook) { h.ObjectSelector = selector("app", "b") }, false},
		"namespace selector fits":    {func(h *refusal.Hook) { h.NamespaceSelector = selector("team", "x") }, true},
		"namespace selector exclude": {func(h *refusal.Hook) { h.NamespaceSelector = selector("team", "y") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hook(tc.change).MustAnswer(write); got != tc.want {
				t.Errorf("MustAnswer() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestConfigurationsAreExemptFromWebhooks(t *testing.T) {
	write := refusal.Write{Operation: admissionv1.Update,
		Resource: admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")}
	all := hook(func(h *refusal.Hook) {
		h.Rules[0].APIGroups, h.Rules[0].APIVersions, h.Rules[0].Resources = []string{"*"}, []string{"*"}, []string{"*"}
	})
	if all.MustAnswer(write) {
		t.Error("a webhook must answer for a webhook configuration")
	}
}

func TestPolicyThatReadsRequest(t *testing.T) {
	for expression, want := range map[string]bool{
		"object.metadata.finalizers.size() > 0":           false,
		"request.userInfo.username == 'operator'":         true,
		"authorizer.group('').resource('pods').check('')": true,
		"request.operation == 'UPDATE'":                   false,
		"!request.dryRun":                                 true,
		"request.options.fieldManager == 'operator'":      true,
	} {
		spec := &admissionv1.ValidatingAdmissionPolicySpec{Variables: []admissionv1.Variable{{Name: "v",
			Expression: expression}}}
		if got := refusal.DependsOnRequest(spec); got != want {
			t.Errorf("DependsOnRequest(%q) = %v, want %v", expression, got, want)
		}
	}
}
