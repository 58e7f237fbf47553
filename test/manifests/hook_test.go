package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hooksOf returns the objects that exist during an uninstall only.
func hooksOf(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return object.GetAnnotations()["helm.sh/hook"] == ""
	})
}

// A Node with the finalizer of a program that is gone can never be deleted.
func TestUninstallTakesTheFinalizerOffNodes(t *testing.T) {
	hooks := hooksOf(templated(t, terminatorOn))
	for _, hook := range hooks {
		if annotations := hook.GetAnnotations(); annotations["helm.sh/hook"] != "pre-delete" ||
			annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s has the annotations %v", nameOf(hook), annotations)
		}
	}
	job := decoded[batchv1.Job](t, hooks, "Job")[0]
	container := job.Spec.Template.Spec.Containers[0]
	if want := registry + "/exeunt:" + loaded(t).Metadata.AppVersion; container.Image != want ||
		!slices.Equal(append(container.Command, container.Args...), []string{"/exeunt", "rollback", "nodes", "--confirm"}) {
		t.Errorf("the Job runs %s: %v %v, want %s", container.Image, container.Command, container.Args, want)
	}
	find(t, hooks, "ServiceAccount", job.Spec.Template.Spec.ServiceAccountName)
	if others := hooksOf(templated(t, values{})); len(others) > 0 {
		t.Errorf("without node-terminator there are %d hooks", len(others))
	}
}

// The Job of the uninstall can change nothing but Nodes, claims and the leader Lease.
func TestUninstallHasTheRightsOfTheRollbackOnly(t *testing.T) {
	hooks := hooksOf(templated(t, terminatorOn))
	want := map[string][]rbacv1.PolicyRule{
		"ClusterRole /exeunt:node-terminator-rollback": {
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
			{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims"}, Verbs: []string{"get", "list", "patch"}},
		},
		"Role kube-system/exeunt:node-terminator-rollback": {
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{"node-terminator"}, Verbs: []string{"get", "update"}},
		},
	}
	if diff := cmp.Diff(want, rulesOf(t, hooks)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	subject := map[string]any{"kind": "ServiceAccount", "name": "node-terminator-rollback", "namespace": "exeunt-system"}
	bindings := bindingsOf(hooks)
	for name, binding := range bindings {
		if diff := cmp.Diff([]any{subject}, binding.([]any)[1]); diff != "" {
			t.Errorf("%s has other subjects:\n%s", name, diff)
		}
	}
	if len(bindings) != 2 {
		t.Errorf("the bindings are %v", bindings)
	}
}
