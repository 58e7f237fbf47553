package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// machineCRD defines the custom resources of the tests.
const machineCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Machine, listKind: MachineList, plural: machines, singular: machine, shortNames: [mc]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var machines = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "machines"}

// machineServer is an API server with custom resources.
type machineServer struct {
	*whyServer
	machines dynamic.ResourceInterface
}

// openMachines starts an API server that serves machines.
func openMachines(t *testing.T) machineServer {
	t.Helper()
	l := open(t, current)
	l.must(sandbox.ApplyYAML(l.ctx, l.plane.RESTConfig(), []byte(machineCRD)), "create the kind")
	client, err := dynamic.NewForConfig(l.plane.RESTConfig())
	l.must(err, "connect to the API server")
	m := machineServer{l, client.Resource(machines).Namespace(l.namespace)}
	m.await("the kind is served", func(ctx context.Context) bool {
		_, err := m.machines.List(ctx, metav1.ListOptions{})
		return err == nil
	})
	return m
}

// await waits until the condition holds.
func (m machineServer) await(what string, holds func(context.Context) bool) {
	m.t.Helper()
	err := wait.PollUntilContextTimeout(m.ctx, 50*time.Millisecond, harness.Timeout, true,
		func(ctx context.Context) (bool, error) { return holds(ctx), nil })
	m.must(err, "wait until "+what)
}

// create creates a machine with an annotation, "" for none, and finalizers.
func (m machineServer) create(name, window string, finalizers ...string) {
	m.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Machine",
		"metadata": map[string]any{"name": name}}}
	object.SetFinalizers(finalizers)
	if window != "" {
		object.SetAnnotations(map[string]string{deadline.Annotation: window})
	}
	_, err := m.machines.Create(m.ctx, object, metav1.CreateOptions{})
	m.must(err, "create "+name)
}

func (m machineServer) get(name string) *unstructured.Unstructured {
	m.t.Helper()
	object, err := m.machines.Get(m.ctx, name, metav1.GetOptions{})
	m.must(err, "read "+name)
	return object
}

// letGo removes the finalizers.
func (m machineServer) letGo(name string) {
	m.t.Helper()
	_, err := m.machines.Patch(m.ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{})
	m.must(err, "remove the finalizers of "+name)
}

// expectGone fails the test if the machine exists.
func (m machineServer) expectGone(name string) {
	m.t.Helper()
	list, err := m.machines.List(m.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	m.must(err, "list machines")
	if len(list.Items) > 0 {
		m.t.Errorf("%s exists", name)
	}
}

// delete runs exeunt delete without waiting for the end, and returns what it prints in one line.
func (m machineServer) delete(args ...string) (output string, code int) {
	m.t.Helper()
	stdout, stderr, code := m.run(append([]string{"delete", "-n", m.namespace, "--wait=false"}, args...)...)
	return strings.TrimSpace(stdout + stderr), code
}

// granted returns the deadline of a machine.
func (m machineServer) granted(name string) time.Time {
	m.t.Helper()
	return deadline.Of(m.get(name)).Deadline(0)
}

// allow lets a user send these verbs for machines.
func (m machineServer) allow(user string, verbs ...string) {
	m.t.Helper()
	_, err := m.client.RbacV1().ClusterRoles().Create(m.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{machines.Group}, Resources: []string{machines.Resource},
			Verbs: verbs}},
	}, metav1.CreateOptions{})
	m.must(err, "create role")
	m.grant(user, user)
}

// deny makes the API server refuse an operation on machines whose name begins with the name of the policy.
func (m machineServer) deny(name string, operation admissionv1.OperationType) {
	m.t.Helper()
	policies := m.client.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(m.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{operation},
					Rule: admissionv1.Rule{APIGroups: []string{machines.Group}, APIVersions: []string{"v1"},
						Resources: []string{machines.Resource}}}}}},
			Validations: []admissionv1.Validation{{Expression: "!request.name.startsWith('" + name + "')",
				Message: "not on my watch"}},
		},
	}, metav1.CreateOptions{})
	m.must(err, "create policy")
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(m.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	m.must(err, "bind policy")
	probe := name + "-probe"
	m.create(probe, "", "example.com/f")
	m.await("the policy denies", func(ctx context.Context) bool {
		all := []string{metav1.DryRunAll}
		if operation == admissionv1.Delete {
			return m.machines.Delete(ctx, probe, metav1.DeleteOptions{DryRun: all}) != nil
		}
		_, err := m.machines.Patch(ctx, probe, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`),
			metav1.PatchOptions{DryRun: all})
		return err != nil
	})
}
