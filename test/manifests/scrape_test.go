package manifests

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podMonitor is what the tests read of a PodMonitor.
type podMonitor struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		JobLabel            string
		Selector            struct{ MatchLabels map[string]string }
		PodMetricsEndpoints []endpoint
	}
}

type endpoint struct {
	Port, Path, Scheme string
	TLSConfig          struct{ InsecureSkipVerify bool }
	Authorization      struct {
		Type        string
		Credentials struct{ Name, Key string }
	}
}

// decoded returns the objects of the kind as values of the type.
func decoded[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var all []T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		var value T
		text, err := json.Marshal(object.Object)
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil {
			t.Fatalf("%s: %v", nameOf(object), err)
		}
		all = append(all, value)
	}
	return all
}

// servedBy are the containers that serve metrics with the prefix.
var servedBy = map[string][]string{
	"exeunt_deletion_waiting":       {"pv-controller", "csi-provisioner"},
	"exeunt_unprotected_volumes":    {"pv-controller", "csi-provisioner"},
	"exeunt_journal_entries":        {"csi-provisioner"},
	"exeunt_provisioning_journal_":  {"csi-provisioner"},
	"exeunt_orphaned_volumes":       {"csi-provisioner"},
	"garbage_collector_":            {"garbage-collector"},
	"node_terminator_":              {"node-terminator"},
	"exeunt_teardown_":              {"alive-controller"},
	"leader_election_master_status": {"pv-controller", "csi-provisioner", "garbage-collector", "node-terminator"},
	"workqueue_depth":               {"pv-controller", "csi-provisioner", "garbage-collector"},
}

var metricName = regexp.MustCompile(`\b(?:exeunt|garbage_collector|node_terminator|leader_election|workqueue)_[a-z_]+`)

// programsOfAlerts returns the containers whose metrics the alerts read.
func programsOfAlerts(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, rule := range alertRules(t).all() {
		for _, metric := range metricName.FindAllString(rule.Expr, -1) {
			before := len(all)
			for prefix, programs := range servedBy {
				if strings.HasPrefix(metric, prefix) {
					all = append(all, programs...)
				}
			}
			if len(all) == before {
				t.Errorf("%s reads %s: which program serves it?", rule.Alert, metric)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// monitored renders all programs with their PodMonitors.
func monitored(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	manifests := slices.Concat(kustomized(t, "."), kustomized(t, "overlays/csimock"), kustomized(t, "garbage-collector"),
		kustomized(t, "node-terminator"), kustomized(t, "alive"), kustomized(t, "monitoring/podmonitor"))
	chart := templated(t, values{
		"provisioner":      values{"deployment": values{"enabled": true, "driver": values{"name": "driver", "image": "driver:v1"}}},
		"garbageCollector": values{"enabled": true}, "nodeTerminator": values{"enabled": true}, "alive": values{"enabled": true},
		"monitoring": values{"podMonitor": true},
	})
	return map[string][]*unstructured.Unstructured{"manifests": manifests, "chart": chart}
}

func TestEveryProgramOfAlertsIsScraped(t *testing.T) {
	programs := programsOfAlerts(t)
	for name, objects := range monitored(t) {
		var scraped []string
		for _, monitor := range decoded[podMonitor](t, objects, "PodMonitor") {
			scraped = append(scraped, scrapedBy(t, objects, monitor)...)
		}
		slices.Sort(scraped)
		if diff := cmp.Diff(programs, slices.Compact(scraped)); diff != "" {
			t.Errorf("%s: programs whose metrics the alerts read (-) and that are scraped (+):\n%s", name, diff)
		}
	}
}

// scrapedBy returns the containers that the PodMonitor reads.
func scrapedBy(t *testing.T, objects []*unstructured.Unstructured, monitor podMonitor) []string {
	t.Helper()
	var found []string
	for _, object := range objects {
		labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
		for key, value := range monitor.Spec.Selector.MatchLabels {
			if labels[key] != value {
				labels = nil
			}
		}
		if len(monitor.Spec.Selector.MatchLabels) == 0 || labels[monitor.Spec.JobLabel] == "" ||
			object.GetNamespace() != monitor.Metadata.Namespace {
			continue
		}
		for _, container := range podsOf(t, []*unstructured.Unstructured{object})[0].Containers {
			if isScraped(t, objects, container, monitor.Spec.PodMetricsEndpoints[0]) {
				found = append(found, container.Name)
			}
		}
	}
	return found
}

// isScraped reports whether the endpoint is a port of the container, with the scheme that is served there.
// Over HTTPS the reader shows the token of an account that may read metrics.
func isScraped(t *testing.T, objects []*unstructured.Unstructured, container v1.Container, e endpoint) bool {
	t.Helper()
	hasPort := slices.ContainsFunc(container.Ports, func(port v1.ContainerPort) bool { return port.Name == e.Port })
	if !hasPort || container.LivenessProbe == nil {
		return false
	}
	scheme := strings.ToLower(string(container.LivenessProbe.HTTPGet.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	if e.Path != "/metrics" || e.Scheme != scheme || container.LivenessProbe.HTTPGet.Port.StrVal != e.Port {
		t.Errorf("%s serves %s on port %s, scraped is %+v", container.Name, scheme, e.Port, e)
	}
	if scheme == "https" && (!e.TLSConfig.InsecureSkipVerify || e.Authorization.Type != "Bearer" ||
		!readsMetrics(t, objects, e.Authorization.Credentials.Name)) {
		t.Errorf("%s is scraped without a token that may read metrics: %+v", container.Name, e)
	}
	return true
}

// readsMetrics reports whether the Secret has the token of an account that may read metrics, and nothing else.
func readsMetrics(t *testing.T, objects []*unstructured.Unstructured, secret string) bool {
	t.Helper()
	token := find(t, objects, "Secret", secret)
	account := token.GetAnnotations()[v1.ServiceAccountNameKey]
	find(t, objects, "ServiceAccount", account)
	roles := map[string][]rbacv1.PolicyRule{}
	for _, role := range decoded[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		roles[role.Name] = role.Rules
	}
	var rules []rbacv1.PolicyRule
	for _, binding := range decoded[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		if subject := binding.Subjects[0]; subject.Name == account && subject.Namespace == token.GetNamespace() {
			rules = append(rules, roles[binding.RoleRef.Name]...)
		}
	}
	return cmp.Equal(rules, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}})
}

// The chart and the manifests scrape alike.
func TestChartScrapesAsManifests(t *testing.T) {
	both := monitored(t)
	got := map[string][]endpoint{}
	for _, monitor := range decoded[podMonitor](t, both["chart"], "PodMonitor") {
		got[monitor.Metadata.Name] = monitor.Spec.PodMetricsEndpoints
	}
	want := map[string][]endpoint{}
	for _, monitor := range decoded[podMonitor](t, both["manifests"], "PodMonitor") {
		want[monitor.Metadata.Name] = monitor.Spec.PodMetricsEndpoints
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints in deploy (-) and in the chart (+):\n%s", diff)
	}
}

// Only programs that the chart installs are scraped.
func TestChartScrapesInstalledProgramsOnly(t *testing.T) {
	on := values{"podMonitor": true, "labels": values{"release": "prometheus"}}
	off := values{"enabled": false}
	sidecar := values{"deployment": values{"enabled": true}}
	for want, given := range map[string]values{
		"pv-controller":     {"monitoring": on},
		"provisioner":       {"monitoring": on, "pvController": off, "provisioner": sidecar},
		"garbage-collector": {"monitoring": on, "pvController": off, "garbageCollector": values{"enabled": true}},
		"node-terminator":   {"monitoring": on, "pvController": off, "nodeTerminator": values{"enabled": true}},
		"alive-controller":  {"monitoring": on, "pvController": off, "alive": values{"enabled": true}},
		"":                  {"pvController": off, "provisioner": sidecar},
	} {
		var names []string
		readers := 0
		for _, object := range templated(t, given) {
			if object.GetKind() == "PodMonitor" && object.GetLabels()["release"] == "prometheus" {
				names = append(names, object.GetName())
			}
			if object.GetName() == "exeunt-metrics-reader" {
				readers++
			}
		}
		needsReader := want != "provisioner" && want != ""
		if got := strings.Join(names, " "); got != want || (readers == 4) != needsReader {
			t.Errorf("scraped: %q, want %q; %d objects of the reader", got, want, readers)
		}
	}
}
