package main

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
)

// undone begins the names of objects whose metadata a mutating admission policy restores in each write of a program.
const undone = "undone-"

// undoPolicy is the name of the policy and of its binding.
const undoPolicy = "soak-undo"

// newUndoPolicy returns the policy. It undoes finalizers, annotations and owner references.
func newUndoPolicy() *admissionv1.MutatingAdmissionPolicy {
	expression := "["
	for i, field := range []string{"finalizers", "annotations", "ownerReferences"} {
		empty := "[]"
		if field == "annotations" {
			empty = "{}"
		}
		if i > 0 {
			expression += ", "
		}
		expression += fmt.Sprintf(
			`JSONPatch{op: "add", path: "/metadata/%s", value: oldObject.metadata.?%[1]s.orValue(%s)}`, field, empty)
	}
	ignore := admissionv1.Ignore
	return &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: undoPolicy},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &ignore, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"persistentvolumes", "persistentvolumeclaims", "configmaps"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "object", Expression: fmt.Sprintf("request.name.startsWith(%q)", undone)},
				{Name: "program", Expression: fmt.Sprintf("request.userInfo.username.startsWith(%q)",
					"system:serviceaccount:"+deploy.Namespace+":")},
			},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: expression + "]"}}},
		},
	}
}

// setUndo begins or ends the undoing of writes. The policy may have gone with a restore of etcd.
func setUndo(ctx context.Context, client kubernetes.Interface, on bool) error {
	policies := client.AdmissionregistrationV1().MutatingAdmissionPolicies()
	bindings := client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	if !on {
		err := bindings.Delete(ctx, undoPolicy, metav1.DeleteOptions{})
		return ignore(err, apierrors.IsNotFound)
	}
	_, err := policies.Create(ctx, newUndoPolicy(), metav1.CreateOptions{})
	if err := ignore(err, apierrors.IsAlreadyExists); err != nil {
		return fmt.Errorf("create policy that undoes writes: %w", err)
	}
	_, err = bindings.Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: undoPolicy},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: undoPolicy},
	}, metav1.CreateOptions{})
	return ignore(err, apierrors.IsAlreadyExists)
}
