package audit

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// namedDriver is a driver of which only the name is used.
type namedDriver struct{ Driver }

func (namedDriver) Name() string { return "example.com" }

func TestMetricHasOrphansOfCompleteAudits(t *testing.T) {
	two := []Orphan{{Handle: "a"}, {Handle: "b"}}
	a := &Auditor{Driver: namedDriver{}, Metrics: NewMetrics()}
	for _, tc := range []struct {
		name   string
		report *Report
		err    error
		want   int
	}{
		{"complete", &Report{Enumerated: true, Orphans: two}, nil, 2},
		{"failed", nil, errors.New("no API server"), -1},
		{"none", &Report{Enumerated: true}, nil, 0},
		{"not enumerated", &Report{}, nil, -1},
		{"again", &Report{Enumerated: true, Orphans: two}, nil, 2},
		{"incomplete", &Report{Enumerated: true, Incomplete: []string{"no right to list pods"}}, nil, -1},
	} {
		a.record(t.Context(), tc.report, tc.err)
		count := testutil.CollectAndCount(a.Metrics.orphans)
		if (count == 1) != (tc.want >= 0) {
			t.Errorf("%s: %d values", tc.name, count)
			continue
		}
		if got := testutil.ToFloat64(a.Metrics.orphans.WithLabelValues("example.com")); tc.want >= 0 && int(got) != tc.want {
			t.Errorf("%s: %v orphans, want %d", tc.name, got, tc.want)
		}
	}
}
