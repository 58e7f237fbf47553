package harness

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Query is a query of an alert or of a panel of the dashboard.
type Query struct {
	Text string
	// Metrics are the names of the metrics in it.
	Metrics []string
}

// OfGarbageCollector reports whether garbage-collector serves the metrics of the query.
func (q Query) OfGarbageCollector() bool {
	return strings.HasPrefix(q.Metrics[0], "garbage_collector_")
}

// OfNodeTerminator reports whether node-terminator serves the metrics of the query.
func (q Query) OfNodeTerminator() bool {
	return strings.HasPrefix(q.Metrics[0], "node_terminator_")
}

// OfAliveController reports whether alive-controller serves the metrics of the query.
func (q Query) OfAliveController() bool {
	return strings.HasPrefix(q.Metrics[0], "exeunt_teardown_")
}

var (
	// metricName matches the names of metrics, and no label or function.
	metricName = regexp.MustCompile(`\b(?:exeunt|workqueue|leader_election|controller|csi|pv_collector|garbage_collector|node_terminator)_[a-z_]+\b`)
	labelValue = regexp.MustCompile(`"[^"]*"`)
)

// MonitoringQueries returns the queries of all alerts and panels. A query without a metric fails the test.
func MonitoringQueries(t *testing.T) []Query {
	t.Helper()
	var rules struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	decode(t, "alerts.yaml", func(text []byte) error { return yaml.Unmarshal(text, &rules) })
	decode(t, "dashboard.json", func(text []byte) error { return json.Unmarshal(text, &board) })
	var texts []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			texts = append(texts, rule.Expr)
		}
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			texts = append(texts, target.Expr)
		}
	}
	var queries []Query
	for _, text := range texts {
		names := metricName.FindAllString(labelValue.ReplaceAllString(text, `""`), -1)
		if len(names) == 0 {
			t.Errorf("no metric in the query %s", text)
			continue
		}
		queries = append(queries, Query{text, names})
	}
	return queries
}

func decode(t *testing.T, name string, into func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(InCheckout("deploy", "monitoring", name))
	if err == nil {
		err = into(text)
	}
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
}

// ExpectServed fails the test unless the page serves every metric of the query.
func (q Query) ExpectServed(t *testing.T, page string) {
	t.Helper()
	for _, name := range q.Metrics {
		if !strings.Contains("\n"+page, "\n"+name+"{") && !strings.Contains("\n"+page, "\n"+name+" ") {
			t.Errorf("no program serves %s of the query %s", name, q.Text)
		}
	}
}
