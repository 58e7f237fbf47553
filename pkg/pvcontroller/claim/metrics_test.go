package claim

import (
	"errors"
	"testing"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestFailedClassAssignmentCountsAsAttemptAndError(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	if err := RegisterMetrics(registry.Register); err != nil {
		t.Fatal(err)
	}
	tries, failures := counted(t, classAssignments), counted(t, classAssignmentErrors)
	countAssignment(nil)
	countAssignment(errors.New("refused"))
	if got := counted(t, classAssignments) - tries; got != 2 {
		t.Errorf("%v tries counted, want 2", got)
	}
	if got := counted(t, classAssignmentErrors) - failures; got != 1 {
		t.Errorf("%v failures counted, want 1", got)
	}
}

func counted(t *testing.T, counter *metrics.Counter) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(counter)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
