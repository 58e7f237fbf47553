package situations

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	admissionGroup    = "admission.situations.example"
	strangerFinalizer = "unknown.situations.example/f"
)

// refusals returns the situations of writes that the API server refuses.
func refusals() []situation {
	return slices.Concat(invalidObjects(), deniedWrites(), deniedByWebhooks(), unreadableObjects(), []situation{
		{
			number: "66", name: "a webhook must answer, and has no endpoints",
			build:   func(r *place) []string { return append(r.createUnansweredObject("Hooked"), "--probe") },
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.AdmissionUnreachable},
			next: "validatingwebhookconfiguration",
			step: func(r *place) { r.removeWebhook("Hooked") },
		},
		{
			number: "66b", name: "a webhook must answer, has no endpoints, and is not probed",
			build:   func(r *place) []string { return r.createUnansweredObject("Unprobed") },
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.AdmissionUnreachable},
			next: "validatingwebhookconfiguration",
			step: func(r *place) { r.removeWebhook("Unprobed") },
		},
	})
}

// deniedWrites returns the situations of policies.
func deniedWrites() []situation {
	return []situation{
		{
			number: "67", name: "a policy refuses the removal of the finalizer",
			build: func(r *place) []string {
				return append(r.createDeniedObject("Kept", "has(object.metadata.finalizers)"), "--probe")
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.AdmissionDenies}, next: "validatingadmissionpolicy",
			step: func(r *place) { r.removePolicy("Kept") },
		},
		{
			number: "67b", name: "a policy lets the operator alone remove the finalizer",
			build: func(r *place) []string {
				return append(r.createDeniedObject("Guarded",
					"has(object.metadata.finalizers) || request.userInfo.username == 'operator'"), "--probe")
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.AdmissionDenies}, next: "validatingadmissionpolicy",
			step: func(r *place) { r.removePolicy("Guarded") },
		},
		{
			number: "67c", name: "nothing refuses the write of a probe",
			build: func(r *place) []string {
				r.createCustom(r.createPulumi(), "Stack", "free", pulumiFinalizer)
				return append(r.deleteCustom(stacks, "free"), "--probe")
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
			step: func(r *place) { r.removeFinalizers(stacks, "free") },
		},
	}
}

// unreadableObjects returns the situations of objects that the API server cannot decrypt.
func unreadableObjects() []situation {
	return []situation{
		{
			number: "68", name: "an object was encrypted with a key that is lost", alone: true,
			build: func(r *place) []string {
				r.restartPlane("first")
				r.createCustom(r.createCRD(lost.Group, "Secretive"), "Secretive", "lost")
				r.restartPlane("second")
				return []string{"secretives.lost.situations.example/lost"}
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ObjectUnreadable}, next: "encryption configuration",
			step: func(r *place) {
				r.restartPlane("first")
				r.deleteCustom(lost, "lost")
			},
		},
	}
}

// invalidObjects returns the situations of custom resources that their schema refuses.
func invalidObjects() []situation {
	var all []situation
	for _, probe := range []string{"", "--probe"} {
		kind := "Strict" + map[string]string{"": "", "--probe": "probed"}[probe]
		resource := schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: strings.ToLower(kind) + "s"}
		all = append(all, situation{
			number: "51" + probe, name: "a custom resource is invalid under the new schema of its definition",
			build: func(r *place) []string {
				r.createCustom(r.createCRD(admissionGroup, kind), kind, "object", strangerFinalizer)
				args := r.deleteCustom(resource, "object")
				r.setSchema(resource, requiresSpec)
				r.Until("the schema holds", func() bool { return r.dryRun(resource, "object") != nil })
				if probe != "" {
					args = append(args, probe)
				}
				return args
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ObjectInvalid},
			next: "edit " + resource.GroupResource().String() + " object",
			step: func(r *place) {
				r.setSchema(resource, map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true})
				r.Until("the schema holds", func() bool { return r.dryRun(resource, "object") == nil })
				r.removeFinalizers(resource, "object")
			},
		})
	}
	return all
}

// requiresSpec is a schema that an object without spec violates.
var requiresSpec = map[string]any{
	"type": "object", "required": []any{"spec"},
	"properties": map[string]any{"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
}

// setSchema changes the schema of the definition.
func (r *place) setSchema(resource schema.GroupVersionResource, content map[string]any) {
	r.T.Helper()
	definition, err := r.dynamic().Resource(definitions).Get(r.Ctx, resource.GroupResource().String(), metav1.GetOptions{})
	r.Must(err, "get definition")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": content}
	r.Must(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"), "set schema")
	_, err = r.dynamic().Resource(definitions).Update(r.Ctx, definition, metav1.UpdateOptions{})
	r.Must(err, "change schema")
}

// dryRun removes the finalizers of the object in a dry run.
func (r *place) dryRun(resource schema.GroupVersionResource, name string) error {
	_, err := r.dynamic().Resource(resource).Namespace(r.Namespace).Patch(r.Ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// createUnansweredObject creates and deletes an object of the kind, to whose updates a
// webhook without endpoints has to agree.
func (r *place) createUnansweredObject(kind string) []string {
	r.T.Helper()
	resource := r.createCRD(admissionGroup, kind)
	r.createCustom(resource, kind, "object", strangerFinalizer)
	args := r.deleteCustom(resource, "object")
	_, err := r.Client.CoreV1().Services(r.Namespace).Create(r.Ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook"}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "webhook"},
			Ports: []v1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create service")
	_, err = r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Create(r.Ctx, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: resource.Resource},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: resource.Resource + ".situations.example", AdmissionReviewVersions: []string{"v1"},
				SideEffects:   new(admissionv1.SideEffectClassNone),
				FailurePolicy: new(admissionv1.Fail), TimeoutSeconds: new(int32(2)),
				ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: r.Namespace,
					Name: "webhook"}},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{APIGroups: []string{admissionGroup}, APIVersions: []string{"*"},
						Resources: []string{resource.Resource}},
				}},
			}},
		}, metav1.CreateOptions{})
	r.Must(err, "create webhook configuration")
	r.Until("the webhook is called", func() bool { return r.dryRun(resource, "object") != nil })
	return args
}

// removeWebhook removes the webhook, and the finalizer.
func (r *place) removeWebhook(kind string) {
	r.T.Helper()
	resource := resourceOf(kind)
	r.Must(r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Delete(r.Ctx, resource.Resource, metav1.DeleteOptions{}), "delete webhook configuration")
	r.Until("the webhook is not called", func() bool { return r.dryRun(resource, "object") == nil })
	r.removeFinalizers(resource, "object")
}

func resourceOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

// createDeniedObject creates and deletes an object of the kind. A policy allows updates
// for which the expression holds.
func (r *place) createDeniedObject(kind, expression string) []string {
	r.T.Helper()
	resource := r.createCRD(admissionGroup, kind)
	r.createCustom(resource, kind, "object", strangerFinalizer)
	args := r.deleteCustom(resource, "object")
	policies := r.Client.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(r.Ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: resource.Resource},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{APIGroups: []string{admissionGroup}, APIVersions: []string{"*"},
					Resources: []string{resource.Resource}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: expression, Message: "the finalizer stays"}},
		},
	}, metav1.CreateOptions{})
	r.Must(err, "create policy")
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(r.Ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: resource.Resource},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: resource.Resource,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	r.Must(err, "create binding")
	r.Until("the policy holds", func() bool { return r.dryRun(resource, "object") != nil })
	return args
}

// removePolicy removes the policy, and the finalizer.
func (r *place) removePolicy(kind string) {
	r.T.Helper()
	resource := resourceOf(kind)
	r.Must(r.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().
		Delete(r.Ctx, resource.Resource, metav1.DeleteOptions{}), "delete binding")
	r.Until("the policy does not hold", func() bool { return r.dryRun(resource, "object") == nil })
	r.removeFinalizers(resource, "object")
}

var lost = schema.GroupVersionResource{Group: "lost.situations.example", Version: "v1", Resource: "secretives"}

// restartPlane restarts the control plane with one key for the encryption of a custom
// resource: with unreadable objects of a built-in kind, the API server is never ready.
func (r *place) restartPlane(key string) {
	r.T.Helper()
	const text = `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{"resources":["secretives.lost.situations.example"],` +
		`"providers":[{"aescbc":{"keys":[{"name":%q,"secret":%q}]}},{"identity":{}}]}]}`
	secrets := map[string]string{"first": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
		"second": "MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	file := filepath.Join(r.Dir, key+".encryption")
	r.Must(os.WriteFile(file, fmt.Appendf(nil, text, key, secrets[key]), 0o600), "write encryption configuration")
	r.Must(r.Plane.Stop(r.Ctx), "stop control plane")
	plane, err := sandbox.StartControlPlane(r.Ctx, sandbox.Config{Binaries: harness.Binaries(), Dir: r.Dir,
		ExtraArgs: []string{"encryption-provider-config=" + file}})
	r.Must(err, "start control plane")
	r.Plane, r.Client = plane, plane.Client()
}
