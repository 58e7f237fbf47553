package manifests

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pods that are not ready, such as those of a wrong image, must not stop a drain of their node.
func TestDisruptionBudgetsLetUnreadyPodsBeEvicted(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"manifests": slices.Concat(kustomized(t, "pv-controller"), kustomized(t, "garbage-collector"), kustomized(t, "node-terminator")),
		"chart":     templated(t, everything()),
	} {
		budgets := slices.DeleteFunc(objects,
			func(object *unstructured.Unstructured) bool { return object.GetKind() != "PodDisruptionBudget" })
		if len(budgets) < 3 {
			t.Errorf("%s: %d budgets", name, len(budgets))
		}
		for _, budget := range budgets {
			if policy, _, _ := unstructured.NestedString(budget.Object, "spec",
				"unhealthyPodEvictionPolicy"); policy != "AlwaysAllow" {
				t.Errorf("%s: the budget %s has the policy %q", name, budget.GetName(), policy)
			}
		}
	}
}

// An overlay is removed again by "kubectl delete -k": the namespace has other programs, too.
func TestOverlaysLeaveTheNamespaceAlone(t *testing.T) {
	for _, overlay := range []string{"overlays/csimock", "overlays/example", "pv-controller", "garbage-collector",
		"node-terminator", "provisioner", "overlays/alive-uninstall"} {
		for _, object := range kustomized(t, overlay) {
			if object.GetKind() == "Namespace" {
				t.Errorf("%s contains the namespace %s", overlay, object.GetName())
			}
		}
	}
}

// The namespace may be missing where alive-controller is the first program; nothing else may stay after its removal.
func TestAliveIsRemovedButForTheNamespace(t *testing.T) {
	installed, removed := kustomized(t, "alive"), kustomized(t, "overlays/alive-uninstall")
	left := slices.DeleteFunc(installed, func(object *unstructured.Unstructured) bool {
		return slices.ContainsFunc(removed, func(other *unstructured.Unstructured) bool {
			return other.GroupVersionKind() == object.GroupVersionKind() && other.GetName() == object.GetName()
		})
	})
	if len(left) != 1 || left[0].GetKind() != "Namespace" {
		t.Errorf("after the removal stay %v", left)
	}
}

// A value for --controllers that is copied as a whole switches on what the distribution, or the
// installation of pv-controller, has switched off.
func TestNoDocumentReplacesControllersFlag(t *testing.T) {
	for _, name := range []string{"README.md", "docs/install.md", "docs/garbage-collector.md"} {
		if strings.Contains(guide(t, name), "--controllers=") {
			t.Errorf("%s gives a whole value for --controllers", name)
		}
	}
}
