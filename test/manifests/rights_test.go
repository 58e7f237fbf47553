package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// rulesOf returns the rules of all roles, by name of the role.
func rulesOf(t *testing.T, objects []*unstructured.Unstructured) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatalf("read %s: %v", nameOf(object), err)
		}
		rules[nameOf(object)] = role.Rules
	}
	return rules
}

// bindingsOf returns subjects and role of each binding, by name of the binding.
func bindingsOf(objects []*unstructured.Unstructured) map[string]any {
	bindings := map[string]any{}
	for _, object := range objects {
		if kind := object.GetKind(); kind == "RoleBinding" || kind == "ClusterRoleBinding" {
			bindings[nameOf(object)] = []any{object.Object["roleRef"], object.Object["subjects"]}
		}
	}
	return bindings
}

func TestChartGrantsSameRightsAsManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		folders []string
		values  values
	}{
		"both programs": {[]string{"pv-controller", "provisioner"}, values{}},
		"with secrets":  {[]string{"pv-controller", "provisioner", "provisioner/secrets"}, values{"provisioner": values{"secrets": true}}},
		"with audits":   {[]string{"pv-controller", "provisioner", "provisioner/audit"}, values{"provisioner": values{"audit": true}}},
		"recycling":     {[]string{"pv-controller", "pv-controller/recycler", "provisioner"}, values{"pvController": values{"recycler": true}}},
		"pv-controller": {[]string{"pv-controller"}, values{"provisioner": values{"enabled": false}}},
		"provisioner":   {[]string{"provisioner"}, values{"pvController": values{"enabled": false}}},
		"collector":     {[]string{"pv-controller", "provisioner", "garbage-collector"}, collectorOn},
		"terminator":    {[]string{"pv-controller", "provisioner", "node-terminator"}, terminatorOn},
		"alive":         {[]string{"pv-controller", "provisioner", "alive"}, aliveOn},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, folder := range tc.folders {
				objects = append(objects, kustomized(t, folder)...)
			}
			inChart := withoutHooks(templated(t, tc.values))
			if diff := cmp.Diff(rulesOf(t, objects), rulesOf(t, inChart)); diff != "" {
				t.Errorf("rules of the manifests (-) and of the chart (+):\n%s", diff)
			}
			if diff := cmp.Diff(bindingsOf(objects), bindingsOf(inChart)); diff != "" {
				t.Errorf("bindings of the manifests (-) and of the chart (+):\n%s", diff)
			}
		})
	}
}

func TestSecretRightIsOptional(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		reads   bool
	}{
		"all manifests":                 {kustomized(t, "."), false},
		"mock driver overlay":           {kustomized(t, "overlays/csimock"), false},
		"swap in the chart of a driver": {kustomized(t, "overlays/example"), false},
		"component":                     {kustomized(t, "provisioner/secrets"), true},
		"chart":                         {templated(t, values{}), false},
		"chart with the value":          {templated(t, values{"provisioner": values{"secrets": true}}), true},
	} {
		t.Run(name, func(t *testing.T) {
			reads := false
			for role, rules := range rulesOf(t, tc.objects) {
				for _, rule := range rules {
					if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") {
						t.Errorf("%s grants everything: %+v", role, rule)
					}
					reads = reads || slices.Contains(rule.Resources, "secrets")
				}
			}
			if reads != tc.reads {
				t.Errorf("secrets are read: %v, want %v", reads, tc.reads)
			}
		})
	}
}

// The journal is in Leases of the provisioner's namespace. Rights on Leases of other
// namespaces would allow to take over any leader election of the cluster.
func TestJournalRightsAreLimitedToOneNamespace(t *testing.T) {
	accounts := values{"provisioner": values{"serviceAccounts": []any{values{"name": "controller",
		"namespace": "storage"}}}}
	for name, tc := range map[string]struct {
		objects   []*unstructured.Unstructured
		namespace string
		account   string
	}{
		"manifests":                     {kustomized(t, "provisioner"), "exeunt-system", "provisioner"},
		"chart":                         {templated(t, values{}), "exeunt-system", "provisioner"},
		"chart with service accounts":   {templated(t, accounts), "storage", "controller"},
		"swap in the chart of a driver": {kustomized(t, "overlays/example"), "storage", "hostpath-controller"},
		"mock driver overlay":           {kustomized(t, "overlays/csimock"), "exeunt-system", "provisioner"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"get", "list", "watch", "create", "update"} {
				if !slices.ContainsFunc(grantedIn(t, tc.objects, tc.namespace, tc.account), func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Resources, "leases") && slices.Contains(r.Verbs, verb) && len(r.ResourceNames) == 0
				}) {
					t.Errorf("%s may not %s leases in %s", tc.account, verb, tc.namespace)
				}
			}
			for role, rules := range rulesOf(t, tc.objects) {
				if strings.HasPrefix(role, "ClusterRole") && slices.ContainsFunc(rules,
					func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "leases") }) {
					t.Errorf("%s grants leases in every namespace", role)
				}
			}
		})
	}
}

// The right to create pods in a namespace includes reading its secrets.
func TestPodCreationRightIsOptional(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		makes   map[string]bool
	}{
		"all manifests":                 {kustomized(t, "."), map[string]bool{}},
		"mock driver overlay":           {kustomized(t, "overlays/csimock"), map[string]bool{}},
		"swap in the chart of a driver": {kustomized(t, "overlays/example"), map[string]bool{}},
		"component":                     {kustomized(t, "pv-controller/recycler"), map[string]bool{"Role default/exeunt:pv-controller-recycler": true}},
		"chart":                         {templated(t, values{}), map[string]bool{}},
		"chart with the value": {templated(t, values{"pvController": values{"recycler": true}}),
			map[string]bool{"Role default/exeunt:pv-controller-recycler": true}},
	} {
		t.Run(name, func(t *testing.T) {
			makes := map[string]bool{}
			for role, rules := range rulesOf(t, tc.objects) {
				for _, rule := range rules {
					if slices.Contains(rule.Resources, "pods") && slices.Contains(rule.Verbs, "create") {
						makes[role] = true
					}
				}
			}
			if diff := cmp.Diff(tc.makes, makes); diff != "" {
				t.Errorf("roles that allow to create pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsAreGrantedToNamedDrivers(t *testing.T) {
	objects := templated(t, values{"provisioner": values{"serviceAccounts": []any{
		values{"name": "controller", "namespace": "storage"}, values{"name": "other", "namespace": "elsewhere"},
	}}})
	binding := find(t, objects, "ClusterRoleBinding", "exeunt:provisioner")
	want := []any{
		map[string]any{"kind": "ServiceAccount", "name": "controller", "namespace": "storage"},
		map[string]any{"kind": "ServiceAccount", "name": "other", "namespace": "elsewhere"},
	}
	if diff := cmp.Diff(want, binding.Object["subjects"]); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	roles := map[string]bool{}
	for _, object := range objects {
		switch {
		case object.GetName() == "provisioner" && object.GetKind() == "ServiceAccount":
			t.Error("there is an unused service account")
		case object.GetName() == "exeunt:provisioner" && object.GetKind() == "Role":
			roles[object.GetNamespace()] = true
		case object.GetKind() == "RoleBinding" && strings.HasPrefix(object.GetName(), "exeunt:provisioner"):
			expectOwnSubjects(t, object)
		}
	}
	if want := map[string]bool{"storage": true, "elsewhere": true}; !cmp.Equal(want, roles) {
		t.Errorf("there are roles in the namespaces %v, want %v", roles, want)
	}
}

// expectOwnSubjects fails the test if a driver gets rights in the namespace of another, which has its journal.
func expectOwnSubjects(t *testing.T, binding *unstructured.Unstructured) {
	t.Helper()
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	if err != nil || len(subjects) != 1 {
		t.Errorf("RoleBinding %s/%s has the subjects %v, want one: %v", binding.GetNamespace(), binding.GetName(), subjects,
			err)
	}
	for _, subject := range subjects {
		if subject, _ := subject.(map[string]any); subject["namespace"] != binding.GetNamespace() {
			t.Errorf("RoleBinding %s/%s has the subject %v", binding.GetNamespace(), binding.GetName(), subject)
		}
	}
}
