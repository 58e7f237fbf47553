package manifests

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/deploy"
)

// policyOn installs the admission policy for two drivers.
var policyOn = values{"admissionPolicy": values{"enabled": true,
	"drivers": []any{"one.example.com", "two.example.com"}}}

func TestChartInstallsTheAdmissionPolicy(t *testing.T) {
	objects := templated(t, policyOn)
	for _, original := range kustomizedComponent(t, "admission") {
		got := find(t, objects, original.GetKind(), original.GetName())
		switch original.GetKind() {
		case "ConfigMap":
			data, _, _ := unstructured.NestedMap(got.Object, "data")
			if names := slices.Sorted(maps.Keys(data)); !slices.Equal(names, []string{"one.example.com", "two.example.com"}) ||
				got.GetNamespace() != deploy.Namespace {
				t.Errorf("the drivers in %s are %v", got.GetNamespace(), names)
			}
		default:
			if diff := cmp.Diff(original.Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("%s in deploy (-) and in the chart (+):\n%s", original.GetKind(), diff)
			}
		}
	}
	find(t, templated(t, values{"admissionPolicy": values{"enabled": true}}), "ConfigMap", deploy.Drivers) // empty
	if text := notesOf(t, policyOn); strings.Contains(text, "admission policy") {
		t.Errorf("the chart says that the policy is not installed:\n%s", text)
	}
}

// kustomizedComponent renders a component of deploy/.
func kustomizedComponent(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	return kustomizedSite(t, map[string]string{"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\ncomponents: [../deploy/" + folder + "]\n"})
}

func TestChartLeavesOutThePolicyOnOlderServers(t *testing.T) {
	files, err := renderFor(loaded(t), withRegistry(policyOn), older)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.Contains(text, "kind: MutatingAdmissionPolicy") {
			t.Errorf("%s has the policy, which the API server does not know", name)
		}
	}
	if notes := files["exeunt/templates/NOTES.txt"]; !strings.Contains(notes, "The admission policy is not installed") {
		t.Errorf("the chart does not say that the policy is left out:\n%s", notes)
	}
}

// "helm template" asks no API server: the version decides, and a comment says that the policy is left out.
func TestChartHasThePolicyByVersionOrKind(t *testing.T) {
	const policy = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	for name, tc := range map[string]struct {
		able *common.Capabilities
		want bool
	}{
		"1.34":                            {abilities("v1.34.4"), false},
		"1.35":                            {abilities("v1.35.4"), false},
		"1.36":                            {abilities("v1.36.0"), true},
		"1.36 of a provider":              {abilities("v1.36.2-gke.1234000"), true},
		"1.37, a test version":            {abilities("v1.37.0-alpha.1"), true},
		"1.35, the kind is named":         {abilities("v1.35.4", policy), true},
		"1.36, another kind is named":     {abilities("v1.36.0", "monitoring.coreos.com/v1/PodMonitor"), true},
		"API server with the kind":        {abilities("v1.36.3", "apps/v1/Deployment", policy), true},
		"API server with the kind off":    {abilities("v1.36.3", "apps/v1/Deployment"), false},
		"API server without the kind yet": {abilities("v1.35.4", "apps/v1/Deployment"), false},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := renderFor(loaded(t), withRegistry(policyOn), tc.able)
			if err != nil {
				t.Fatal(err)
			}
			text := files["exeunt/templates/admission.yaml"]
			for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ConfigMap"} {
				if strings.Contains(text, "kind: "+kind+"\n") != tc.want {
					t.Errorf("has %s: %t, want %t:\n%s", kind, !tc.want, tc.want, text)
				}
			}
			if said := strings.Contains(text, "# The admission policy is left out"); said == tc.want {
				t.Errorf("says that the policy is left out: %t:\n%s", said, text)
			}
			if said := strings.Contains(files["exeunt/templates/NOTES.txt"],
				"The admission policy is not installed"); said == tc.want {
				t.Errorf("the notes say that the policy is left out: %t", said)
			}
		})
	}
}

// The socket of a driver that runs as root is the root user's.
func TestChartSetsUserOfProvisioner(t *testing.T) {
	objects := templated(t, values{"provisioner": values{"deployment": values{
		"enabled": true, "securityContext": values{"runAsUser": 0, "runAsNonRoot": false},
	}}})
	pod := podsOf(t, []*unstructured.Unstructured{find(t, objects, "Deployment", "csimock")})[0]
	for _, container := range pod.Containers {
		security := container.SecurityContext
		if container.Name != "csi-provisioner" {
			if security != nil && security.RunAsUser != nil {
				t.Errorf("%s runs as user %d", container.Name, *security.RunAsUser)
			}
			continue
		}
		root, no, yes := int64(0), false, true
		want := &v1.SecurityContext{
			RunAsUser: &root, RunAsNonRoot: &no, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		}
		if diff := cmp.Diff(want, security); diff != "" {
			t.Errorf("security context:\n%s", diff)
		}
	}
}

// notesOf returns what the chart says after the installation.
func notesOf(t *testing.T, given values) string {
	t.Helper()
	files, err := render(loaded(t), withRegistry(given))
	if err != nil {
		t.Fatal(err)
	}
	return files["exeunt/templates/NOTES.txt"]
}

func TestChartInstallsMonitoring(t *testing.T) {
	objects := templated(t, values{"monitoring": values{"alerts": true, "dashboard": true,
		"labels": values{"release": "prometheus"}}})
	rule, panel := find(t, objects, "PrometheusRule", "exeunt"), find(t, objects, "ConfigMap", "exeunt-dashboard")
	if diff := cmp.Diff(kustomized(t, "monitoring")[0].Object["spec"], rule.Object["spec"]); diff != "" {
		t.Errorf("alerts in deploy (-) and in the chart (+):\n%s", diff)
	}
	for _, object := range []*unstructured.Unstructured{rule, panel} {
		if object.GetLabels()["release"] != "prometheus" || object.GetLabels()["app.kubernetes.io/part-of"] != "exeunt" {
			t.Errorf("%s has the labels %v", nameOf(object), object.GetLabels())
		}
	}
	if text, _, _ := unstructured.NestedString(panel.Object, "data",
		"exeunt.json"); panel.GetLabels()["grafana_dashboard"] != "1" || !strings.Contains(text, `"panels"`) {
		t.Errorf("the dashboard is %v: %s", panel.GetLabels(), text)
	}
}

// collectorOn installs garbage-collector.
var collectorOn = values{"garbageCollector": values{"enabled": true}}

// terminatorOn installs node-terminator.
var terminatorOn = values{"nodeTerminator": values{"enabled": true}}

// A release in another namespace has the priority as well.
func TestChartInstallsPriority(t *testing.T) {
	objects := templated(t, values{"garbageCollector": values{"enabled": true}, "nodeTerminator": values{"enabled": true},
		"alive": values{"enabled": true}})
	command := []string{"kubectl", "apply", "-f", "deploy/pv-controller/priority.yaml",
		"-f", "deploy/garbage-collector/priority.yaml", "-f", "deploy/node-terminator/priority.yaml", "-f", "deploy/alive/priority.yaml"}
	for _, original := range applied(t, command) {
		if diff := cmp.Diff(original.Object["spec"], find(t, objects, "FlowSchema", original.GetName()).
			Object["spec"]); diff != "" {
			t.Errorf("%s in deploy (-) and in the chart (+):\n%s", original.GetName(), diff)
		}
	}
}

// Without values the chart installs nothing that an administrator did not ask for.
func TestChartInstallsNoExtrasByDefault(t *testing.T) {
	for _, object := range templated(t, values{}) {
		if strings.Contains(object.GetName(), "garbage-collector") || strings.Contains(object.GetName(), "node-terminator") ||
			strings.Contains(object.GetName(), "alive") {
			t.Errorf("the chart installs %s", nameOf(object))
		}
		if kind := object.GetKind(); slices.Contains([]string{"MutatingAdmissionPolicy", "ConfigMap", "PrometheusRule"},
			kind) {
			t.Errorf("the chart installs %s", nameOf(object))
		}
	}
}

func TestChartSetsWhatPodsNeed(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	pod := func(v values) values {
		maps.Copy(v, values{
			"env": []any{values{"name": "HTTPS_PROXY", "value": "http://proxy"}}, "podAnnotations": values{"example.com/scrape": "yes"},
			"affinity": values{"nodeAffinity": values{"requiredDuringSchedulingIgnoredDuringExecution": values{"nodeSelectorTerms": []any{}}}},
		})
		return v
	}
	objects := templated(t, values{
		"pvController":     pod(values{"image": values{"digest": digest}}),
		"provisioner":      values{"image": values{"digest": digest}, "deployment": pod(values{"enabled": true})},
		"garbageCollector": pod(values{"enabled": true, "image": values{"digest": digest}}),
		"nodeTerminator":   pod(values{"enabled": true, "image": values{"digest": digest}}),
		"alive":            pod(values{"enabled": true, "image": values{"digest": digest}}),
	})
	for name, image := range map[string]string{"pv-controller": "pv-controller", "csimock": "provisioner",
		"garbage-collector": "garbage-collector", "node-terminator": "node-terminator", "alive-controller": "alive-controller"} {
		object := find(t, objects, "Deployment", name)
		annotations, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "annotations")
		if annotations["example.com/scrape"] != "yes" {
			t.Errorf("the pods of %s have the annotations %v", name, annotations)
		}
		spec := podsOf(t, []*unstructured.Unstructured{object})[0]
		last := spec.Containers[len(spec.Containers)-1]
		if last.Image != registry+"/"+image+"@"+digest {
			t.Errorf("%s runs %s", name, last.Image)
		}
		if !slices.Contains(last.Env, v1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy"}) {
			t.Errorf("%s has the environment %v", name, last.Env)
		}
		if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.PodAntiAffinity != nil {
			t.Errorf("%s has the affinity %v", name, spec.Affinity)
		}
	}
}

// Replicas of a driver's controller are on different nodes, and are not evicted at once.
func TestChartSpreadsReplicasOfDriver(t *testing.T) {
	for replicas, spread := range map[int]bool{1: false, 2: true} {
		objects := templated(t, values{"provisioner": values{"deployment": values{"enabled": true, "replicas": replicas}}})
		budgets := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
			return o.GetKind() != "PodDisruptionBudget" || o.GetName() != "csimock"
		})
		controller := find(t, objects, "Deployment", "csimock")
		affinity, _, _ := unstructured.NestedMap(controller.Object, "spec", "template", "spec", "affinity", "podAntiAffinity")
		if (len(budgets) == 1) != spread || (affinity != nil) != spread {
			t.Fatalf("%d replicas: %d budgets, affinity %v; want both: %t", replicas, len(budgets), affinity, spread)
		}
		if !spread {
			continue
		}
		selector, _, _ := unstructured.NestedMap(controller.Object, "spec", "selector")
		budget, _, _ := unstructured.NestedMap(budgets[0].Object, "spec", "selector")
		terms, _, _ := unstructured.NestedSlice(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
		term, _, _ := unstructured.NestedMap(terms[0].(map[string]any), "podAffinityTerm", "labelSelector")
		if !cmp.Equal(selector, budget) || !cmp.Equal(selector, term) {
			t.Errorf("pods %v, of the budget %v, of the affinity %v", selector, budget, term)
		}
	}
}
