package manifests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// ruleGroups are the groups of a rule file of Prometheus.
type ruleGroups struct {
	Groups []struct {
		Name  string
		Rules []alertRule
	}
}

// alertRule is one alert.
type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// runbooks is the document that every alert links to.
var runbooks = filepath.Join("docs", "troubleshooting.md")

func alertRules(t *testing.T) ruleGroups {
	t.Helper()
	var rules ruleGroups
	readYAML(t, filepath.Join(deployment, "monitoring", "alerts.yaml"), &rules)
	if len(rules.Groups) == 0 || len(rules.Groups[0].Rules) == 0 {
		t.Fatal("there are no alerts")
	}
	return rules
}

// all returns the rules of all groups.
func (r ruleGroups) all() []alertRule {
	var rules []alertRule
	for _, group := range r.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

// promtool runs Prometheus' tool, which "make promtool" builds.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	bin := os.Getenv("EXEUNT_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	output, err := exec.CommandContext(t.Context(), filepath.Join(bin, "tools", "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func TestAlertsPassPrometheusRuleTests(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(deployment, "monitoring", "alerts.yaml"))
	promtool(t, "test", "rules", filepath.Join("testdata", "alerts_test.yaml"))
}

func TestEveryAlertHasRuleTest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alertRules(t).all() {
		if strings.Count(string(text), "alertname: "+rule.Alert+"\n        exp_alerts:") == 0 {
			t.Errorf("no rule test expects the alert %s", rule.Alert)
		}
	}
}

func TestEveryAlertLinksToItsRunbook(t *testing.T) {
	headings := anchors(guide(t, runbooks))
	for _, rule := range alertRules(t).all() {
		page, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
		if !strings.HasSuffix(page, "/"+filepath.ToSlash(runbooks)) || anchor != strings.ToLower(rule.Alert) ||
			!headings[anchor] {
			t.Errorf("%s links to %s#%s, which is no heading", rule.Alert, page, anchor)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" ||
			rule.For == "" {
			t.Errorf("%s lacks summary, description, severity or duration: %+v", rule.Alert, rule)
		}
	}
}

func TestPrometheusRuleHasTheSameAlerts(t *testing.T) {
	var object struct {
		APIVersion, Kind string
		Metadata         map[string]string
		Spec             ruleGroups
	}
	readYAML(t, filepath.Join(deployment, "monitoring", "prometheusrule.yaml"), &object)
	if object.Kind != "PrometheusRule" || object.APIVersion != "monitoring.coreos.com/v1" {
		t.Errorf("the object is a %s of %s", object.Kind, object.APIVersion)
	}
	if diff := cmp.Diff(alertRules(t), object.Spec); diff != "" {
		t.Errorf("alerts.yaml (-) and prometheusrule.yaml (+):\n%s", diff)
	}
	if objects := kustomized(t, "monitoring"); len(objects) != 1 || objects[0].GetKind() != "PrometheusRule" {
		t.Errorf("the kustomization has %d objects", len(objects))
	}
}

// dashboard is what the tests read of the dashboard.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
	}
}

func TestEveryPanelOfTheDashboardHasOneQuery(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployment, "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board dashboard
	if err := json.Unmarshal(text, &board); err != nil || board.UID == "" || len(board.Panels) == 0 {
		t.Fatalf("read the dashboard: %+v, error %v", board, err)
	}
	ids := map[int]bool{}
	for _, panel := range board.Panels {
		if len(panel.Targets) != 1 || ids[panel.ID] || panel.Title == "" {
			t.Errorf("panel %d %q has %d queries, or its number twice", panel.ID, panel.Title, len(panel.Targets))
			continue
		}
		ids[panel.ID] = true
		promtool(t, "--experimental", "promql", "format", panel.Targets[0].Expr)
	}
}
