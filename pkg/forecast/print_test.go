package forecast_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/exeunt-io/exeunt/pkg/forecast"
)

// shop is a node with one pod of each kind.
func shop(t *testing.T) Report {
	t.Helper()
	w := &storedWorld{budgeted(world("15m"), newBudget("web", 1))}
	w.Claims, w.Volumes = map[string]*v1.PersistentVolumeClaim{}, map[string]*v1.PersistentVolume{}
	w.Pods = []v1.Pod{
		newPod("web-1", w.mounting("data")), newPod("web-2"), newPod("long", grace(1000), func(p *v1.Pod) { p.Labels = nil }),
		newPod("job", annotated("true"), func(p *v1.Pod) { p.Labels, p.OwnerReferences = nil, nil }),
		newPod("dns", critical, func(p *v1.Pod) { p.Labels = nil }), newPod("agent", daemon, tolerant),
		newPod("held", func(p *v1.Pod) { p.Labels, p.Finalizers = nil, []string{"example.com/archive"} }),
	}
	w.Attachments = append(w.Attachments, attachment("csi-1", "data"), attachment("csi-2", ""))
	report, err := w.Of()
	if err != nil {
		t.Fatal(err)
	}
	report.Incomplete = []string{"no right to list leases\x1b[31m"}
	return report
}

func TestTextIsThatOfGoldenFile(t *testing.T) {
	var out strings.Builder
	report := shop(t)
	if err := report.Print(&out, ""); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/shop.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("the text differs:\n%s", diff)
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("a line has more than 80 columns: %s", line)
		}
	}
}

func TestJSONKeepsReport(t *testing.T) {
	var out strings.Builder
	report := shop(t)
	if err := report.Print(&out, "json"); err != nil {
		t.Fatal(err)
	}
	var read Report
	if err := json.Unmarshal([]byte(out.String()), &read); err != nil || strings.Contains(out.String(), "null") {
		t.Fatalf("%v, or null, in %s", err, out.String())
	}
	if diff := cmp.Diff(report, read); diff != "" {
		t.Errorf("the report differs:\n%s", diff)
	}
}
