package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// aliveOn installs Alive.
var aliveOn = values{"alive": values{"enabled": true}}

// kept are the objects whose removal would signal a teardown, take a guard away, or keep participants from leaving.
var kept = []string{
	"CustomResourceDefinition /alives.lifecycle.exeunt.io",
	"ValidatingAdmissionPolicy /exeunt-alive", "ValidatingAdmissionPolicyBinding /exeunt-alive",
	"ValidatingAdmissionPolicy /exeunt-alive-definition", "ValidatingAdmissionPolicyBinding /exeunt-alive-definition",
	"ClusterRole /exeunt-alive-participant",
}

func TestRemovalOfReleaseKeepsAliveAndItsGuards(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"manifests": kustomized(t, "alive"), "chart": templated(t, aliveOn),
	} {
		found := 0
		for _, object := range objects {
			if !slices.Contains(kept, nameOf(object)) {
				continue
			}
			found++
			annotations := object.GetAnnotations()
			if annotations["helm.sh/resource-policy"] != "keep" ||
				annotations["argocd.argoproj.io/sync-options"] != "Prune=false,Delete=false" ||
				annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
				t.Errorf("%s: %s has the annotations %v", name, nameOf(object), annotations)
			}
		}
		if found != len(kept) {
			t.Errorf("%s: %d objects are kept, want %d", name, found, len(kept))
		}
	}
}

// A manifest with Alive would let GitOps reset its spec, or delete it.
func TestNoManifestContainsAliveOrTheFreeze(t *testing.T) {
	for name, objects := range renderings(t) {
		for _, object := range objects {
			if object.GetKind() == "Alive" || strings.Contains(object.GetName(), "freeze") {
				t.Errorf("%s contains %s", name, nameOf(object))
			}
		}
	}
}

// The chart and the manifests install the same guards, and run alive-controller alike.
func TestChartInstallsAliveAsManifests(t *testing.T) {
	objects, inChart := kustomized(t, "alive"), templated(t, aliveOn)
	for _, name := range kept {
		kind, name, _ := strings.Cut(name, " /")
		for _, field := range []string{"spec", "rules"} {
			want, got := find(t, objects, kind, name).Object[field], find(t, inChart, kind, name).Object[field]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s in the manifests (-) and in the chart (+):\n%s", kind, name, diff)
			}
		}
	}
	want, got := find(t, objects, "Deployment", "alive-controller"), find(t, inChart, "Deployment", "alive-controller")
	pods := podsOf(t, []*unstructured.Unstructured{want, got})
	pods[0].Containers[0].Image = pods[1].Containers[0].Image
	pods[0].Containers[0].Args = append(pods[0].Containers[0].Args, "--v=2")
	if diff := cmp.Diff(pods[0], pods[1]); diff != "" {
		t.Errorf("pods of the manifests (-) and of the chart (+):\n%s", diff)
	}
	for _, one := range deploymentsIn(t, []*unstructured.Unstructured{want, got}) {
		if *one.Spec.Replicas != 1 {
			t.Errorf("%d replicas", *one.Spec.Replicas)
		}
	}
}

// alive-controller may delete nothing and write no policy before an administrator binds the right.
func TestAliveControllerIsUnarmed(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"manifests": kustomized(t, "alive"), "chart": templated(t, aliveOn),
	} {
		for binding, content := range bindingsOf(objects) {
			role, _ := content.([]any)[0].(map[string]any)
			if strings.Contains(binding, "alive-controller") || !strings.Contains(binding, "exeunt") {
				continue // of other programs, and for the readers of metrics
			}
			if role["name"] == "exeunt-teardown" {
				t.Errorf("%s: %s binds the right to tear down", name, binding)
			}
		}
		for _, rule := range rulesOf(t, objects)["ClusterRole /exeunt-alive"] {
			if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return strings.HasPrefix(verb, "delete") || verb == "*" }) ||
				slices.Equal(rule.Resources, []string{"alives"}) && slices.Contains(rule.Verbs, "patch") ||
				slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") && !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("%s: alive-controller has the rule %+v", name, rule)
			}
		}
	}
	armed := bindingsOf(kustomized(t, "alive/armed"))
	subjects := []any{map[string]any{"kind": rbacv1.ServiceAccountKind, "name": "alive-controller", "namespace": "exeunt-system"}}
	for _, name := range []string{"ClusterRoleBinding /exeunt-teardown", "RoleBinding exeunt-system/exeunt-teardown"} {
		if got, _ := armed[name].([]any); len(got) != 2 || !cmp.Equal(got[1], any(subjects)) {
			t.Errorf("%s binds %v", name, got)
		}
	}
}

// The runner may neither delete Alive nor a volume, and changes no policy but the freeze.
func TestRunnerIsLimited(t *testing.T) {
	writes := func(rule rbacv1.PolicyRule, verbs ...string) bool {
		return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(verbs, verb) })
	}
	for role, rules := range rulesOf(t, kustomized(t, "alive")) {
		for _, rule := range rules {
			for _, forbidden := range []string{"alives", "persistentvolumes", "namespaces", "nodes", "customresourcedefinitions", "secrets"} {
				if slices.Contains(rule.Resources, forbidden) && writes(rule, "delete", "deletecollection", "*") ||
					forbidden != "alives" && forbidden != "persistentvolumes" && slices.Contains(rule.Resources, forbidden) &&
						writes(rule, "create", "patch", "update") {
					t.Errorf("%s may write %s: %+v", role, forbidden, rule)
				}
			}
			if slices.Contains(rule.Resources, "validatingadmissionpolicies") && writes(rule, "patch", "update", "delete") &&
				!slices.Equal(rule.ResourceNames, []string{"exeunt-teardown-freeze"}) {
				t.Errorf("%s may change every policy: %+v", role, rule)
			}
		}
	}
}

func TestChartRefusesAliveInAnotherNamespace(t *testing.T) {
	c := loaded(t)
	checked, err := util.ToRenderValues(c, withRegistry(aliveOn),
		common.ReleaseOptions{Name: "exeunt", Namespace: "other", Revision: 1, IsInstall: true}, present())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (engine.Engine{Strict: true}).Render(c, checked); err == nil ||
		!strings.Contains(err.Error(), "needs the namespace exeunt-system") {
		t.Errorf("answered with %v", err)
	}
}

func TestNotesSayThatAliveProtects(t *testing.T) {
	if notes := notesOf(t, aliveOn); !strings.Contains(notes, "docs/teardown.md") {
		t.Errorf("notes:\n%s", notes)
	}
	if notes := notesOf(t, values{}); strings.Contains(notes, "Alive") {
		t.Errorf("notes without Alive:\n%s", notes)
	}
}
