package differential

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The metrics that dashboards and alerts read, and their labels. counted: the values count
// objects and must be equal too. former and renamed: Kubernetes 1.36 renamed the metric, and
// ours serves both names. stale: upstream may count deleted volumes, because a late operation puts a
// volume back into its cache.
var metricsOfUpstream = map[string]struct {
	labels                          string
	counted, former, renamed, stale bool
}{
	"pv_collector_total_pv_count":                 {labels: "plugin_name volume_mode"},
	"pv_collector_bound_pv_count":                 {labels: "storage_class", counted: true},
	"pv_collector_unbound_pv_count":               {labels: "storage_class", counted: true, stale: true},
	"pv_collector_bound_pvc_count":                {labels: "namespace storage_class volume_attributes_class", counted: true},
	"pv_collector_unbound_pvc_count":              {labels: "namespace storage_class volume_attributes_class", counted: true},
	"volume_operation_total_seconds":              {labels: "operation_name plugin_name"},
	"volume_operation_errors_total":               {labels: "operation_name plugin_name", renamed: true},
	"volume_operation_total_errors":               {labels: "operation_name plugin_name", former: true},
	"storage_operation_duration_seconds":          {labels: "migrated operation_name status volume_plugin"},
	"retroactive_storageclass_total":              {},
	"retroactive_storageclass_errors_total":       {},
	"workqueue_depth":                             {labels: "name"},
	"workqueue_adds_total":                        {labels: "name"},
	"workqueue_queue_duration_seconds":            {labels: "name"},
	"workqueue_work_duration_seconds":             {labels: "name"},
	"workqueue_unfinished_work_seconds":           {labels: "name"},
	"workqueue_longest_running_processor_seconds": {labels: "name"},
	"workqueue_retries_total":                     {labels: "name"},
}

// It runs after the scenarios, whose objects are counted.
func TestMetricsMatchUpstream(t *testing.T) {
	mine, theirs := served(t, ours), served(t, upstream)
	for name, metric := range metricsOfUpstream {
		t.Run(name, func(t *testing.T) {
			for side, families := range map[string]map[string]*dto.MetricFamily{"ours": mine, "upstream": theirs} {
				if metric.former && side == "upstream" && renamesMetrics() {
					continue
				}
				want := !metric.renamed || side == "ours" || renamesMetrics()
				if labels, found := labelsOf(families[name]); found != want || found && labels != metric.labels {
					t.Errorf("%s serves it: %v, want %v, with labels %q, want %q", side, found, want, labels, metric.labels)
				}
			}
			if !metric.counted {
				return
			}
			have, want := counts(mine[name]), counts(theirs[name])
			if len(want) == 0 {
				t.Error("upstream counts nothing, so that nothing is compared")
			}
			for _, series := range slices.Sorted(maps.Keys(merge(have, want))) {
				if have[series] != want[series] && !(metric.stale && have[series] < want[series]) {
					t.Errorf("%s: ours counts %v, upstream %v", series, have[series], want[series])
				}
			}
		})
	}
}

// renamesMetrics reports whether upstream's loops have the new name of a renamed metric.
func renamesMetrics() bool { return harness.KubeMinor() != "1.34" && harness.KubeMinor() != "1.35" }

// merge returns the series of both.
func merge(a, b map[string]float64) map[string]float64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// served returns the metrics of a side, by name.
func served(t *testing.T, start func() (*side, error)) map[string]*dto.MetricFamily {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", s.port),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	// The program creates its certificate at start, so clients cannot verify it.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s: %v", s.name, response.Status, err)
	}
	return families
}

// labelsOf returns the label names of a family, false if the family is empty.
func labelsOf(family *dto.MetricFamily) (string, bool) {
	if family == nil || len(family.Metric) == 0 {
		return "", false
	}
	var names []string
	for _, label := range family.Metric[0].Label {
		names = append(names, label.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, " "), true
}

// counts returns the values of a family by labels, for scenarios with equal outcomes on
// both main sides.
func counts(family *dto.MetricFamily) map[string]float64 {
	found := map[string]float64{}
	for _, metric := range family.GetMetric() {
		var key []string
		compared := false
		for _, label := range metric.Label {
			key = append(key, label.GetName()+"="+label.GetValue())
			compared = compared || results.endedEqual(label.GetValue())
		}
		if compared {
			slices.Sort(key)
			found[strings.Join(key, " ")] = metric.GetGauge().GetValue()
		}
	}
	return found
}

// It runs after the scenarios, which have used the queues.
func TestQueueNamesMatchUpstream(t *testing.T) {
	mine, theirs := queues(served(t, ours)), queues(served(t, upstream))
	for _, name := range []string{"claims", "volumes", "pvcprotection", "pvprotection"} {
		if mine[name] == 0 || theirs[name] == 0 {
			t.Errorf("queue %s: ours was given %v keys, upstream %v", name, mine[name], theirs[name])
		}
	}
}

// queues returns the number of additions to each queue.
func queues(families map[string]*dto.MetricFamily) map[string]float64 {
	added := map[string]float64{}
	for _, metric := range families["workqueue_adds_total"].GetMetric() {
		for _, label := range metric.Label {
			if label.GetName() == "name" {
				added[label.GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	return added
}
