package situations

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// deniedByWebhooks returns the situations of a webhook that refuses the write of a controller.
func deniedByWebhooks() []situation {
	build := func(r *place) []string {
		r.createCustom(r.createPulumi(), "Stack", "guarded", pulumiFinalizer)
		args := r.deleteCustom(stacks, "guarded")
		r.denyUpdates()
		return args
	}
	step := func(r *place) {
		r.Must(r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
			Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete webhook configuration")
		r.Until("the webhook is not called", func() bool { return r.dryRun(stacks, "guarded") == nil })
		r.removeFinalizers(stacks, "guarded")
	}
	return []situation{
		{
			number: "67w", name: "a webhook refuses the removal of the finalizer by its controller", build: build, step: step,
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs}, next: "--probe",
			evidence: []string{"may refuse it: guard.situations.example of ValidatingWebhookConfiguration"},
		},
		{
			number: "67y", name: "policies may refuse or undo the removal of the finalizer by its controller",
			build: func(r *place) []string {
				r.createCustom(r.createPulumi(), "Stack", "guarded", pulumiFinalizer)
				args := r.deleteCustom(stacks, "guarded")
				r.createPolicies()
				return args
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs}, next: "--probe",
			evidence: []string{"and may refuse or undo it: ValidatingAdmissionPolicy e2e-", ", MutatingAdmissionPolicy e2e-"},
			step: func(r *place) {
				r.Until("the API server has the schema for the policy", func() bool { return r.dryRun(stacks, "guarded") == nil })
				r.removeFinalizers(stacks, "guarded")
			},
		},
		{
			number: "67x", name: "the same, probed", step: step,
			build:   func(r *place) []string { return append(build(r), "--probe") },
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.AdmissionDenies},
			next:     "kubectl get validatingwebhookconfiguration e2e-",
			evidence: []string{"not before Monday"},
		},
	}
}

// createPolicies creates a policy that validates updates of stacks in the situation's namespace, and one that changes
// them: the finalizer's controller may remove the finalizer. A third has no binding.
func (r *place) createPolicies() {
	r.T.Helper()
	client := r.Client.AdmissionregistrationV1()
	updates := &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": r.Namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{stacks.Group}, APIVersions: []string{"*"},
				Resources: []string{stacks.Resource}},
		}}},
	}
	for _, name := range []string{r.Namespace, r.Namespace + "-unbound"} {
		_, err := client.ValidatingAdmissionPolicies().Create(r.Ctx, &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: updates,
				Validations: []admissionv1.Validation{{Expression: "true"}}},
		}, metav1.CreateOptions{})
		r.Must(err, "create policy")
	}
	_, err := client.ValidatingAdmissionPolicyBindings().Create(r.Ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: r.Namespace,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	r.Must(err, "create binding")
	_, err = client.MutatingAdmissionPolicies().Create(r.Ctx, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: updates, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: "Object{}"},
			}},
		},
	}, metav1.CreateOptions{})
	r.Must(err, "create policy")
	_, err = client.MutatingAdmissionPolicyBindings().Create(r.Ctx, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: r.Namespace},
	}, metav1.CreateOptions{})
	r.Must(err, "create binding")
}

// denyUpdates has a webhook deny all updates of stacks in the situation's namespace.
func (r *place) denyUpdates() {
	r.T.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review reviewv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &reviewv1.AdmissionResponse{UID: review.Request.UID,
			Result: &metav1.Status{Message: "not before Monday"}}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			r.T.Errorf("answer the review: %v", err)
		}
	}))
	r.T.Cleanup(server.Close)
	_, err := r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Create(r.Ctx, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "guard.situations.example", AdmissionReviewVersions: []string{"v1"},
				SideEffects: new(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{
					URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
				},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": r.Namespace}},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{APIGroups: []string{stacks.Group}, APIVersions: []string{"*"},
						Resources: []string{stacks.Resource}},
				}},
			}},
		}, metav1.CreateOptions{})
	r.Must(err, "create webhook configuration")
	r.Until("the webhook is called", func() bool { return r.dryRun(stacks, "guarded") != nil })
}
