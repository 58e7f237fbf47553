package metrics

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestOperationsHaveUpstreamMetricNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, operations := metrics.NewKubeRegistry(), NewOperations()
		if err := operations.Register(registry.Register); err != nil {
			t.Fatal(err)
		}
		operations.Begin("volume", "kubernetes.io/host-path", Delete)
		<-time.After(2 * time.Second)
		operations.Begin("volume", "another", Provision) // goes on, and began when it began
		operations.Failed("volume")
		operations.Succeeded("volume")
		operations.Begin("dropped", "kubernetes.io/host-path", Delete)
		operations.Abandoned("dropped")
		for _, never := range []func(){func() { operations.Failed("dropped") }, func() { operations.Succeeded("dropped") },
			func() { operations.Succeeded("volume") }} {
			never()
		}
		if err := operations.Call("kubernetes.io/host-path", Delete, func() error { return errors.New("no") }); err == nil {
			t.Error("the error of the call was swallowed")
		}
		if err := operations.Call("kubernetes.io/host-path", Delete, func() error { return nil }); err != nil {
			t.Error(err)
		}
		want := `
			# HELP volume_operation_errors_total [ALPHA] Number of failed tries of operations
			# TYPE volume_operation_errors_total counter
			volume_operation_errors_total{operation_name="delete",plugin_name="kubernetes.io/host-path"} 1
			# HELP volume_operation_total_seconds [ALPHA] Time from the first try of an operation until its end, in seconds
			# TYPE volume_operation_total_seconds histogram
			` + histogram("volume_operation_total_seconds", `operation_name="delete",plugin_name="kubernetes.io/host-path"`, 4, "2")
		want += `
			# HELP storage_operation_duration_seconds [ALPHA] Time that a single call of a volume plugin takes, in seconds
			# TYPE storage_operation_duration_seconds histogram
			` + histogram("storage_operation_duration_seconds", `migrated="false",operation_name="volume_delete",status="fail-unknown",volume_plugin="kubernetes.io/host-path"`, 0, "0") +
			histogram("storage_operation_duration_seconds", `migrated="false",operation_name="volume_delete",status="success",volume_plugin="kubernetes.io/host-path"`, 0, "0")
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "volume_operation_errors_total", "volume_operation_total_seconds", "storage_operation_duration_seconds"); err != nil {
			t.Error(err)
		}
		// The older name is no good name for the linter of metrics, and dashboards have it.
		old, err := testutil.GetCounterMetricValue(operations.errored.WithLabelValues("kubernetes.io/host-path", Delete))
		if err != nil || old != 1 || operations.errored.FQName() != "volume_operation_total_errors" {
			t.Errorf("%s is %v (%v), want 1", operations.errored.FQName(), old, err)
		}
	})
}

// histogram is one observation of sum, which is in the bucket with the index first
// and in those after it.
func histogram(name, labels string, first int, sum string) string {
	var text strings.Builder
	for i, bound := range strings.Fields("0.1 0.25 0.5 1 2.5 5 10 15 25 50 120 300 600 +Inf") {
		count := "0"
		if i >= first {
			count = "1"
		}
		text.WriteString(name + "_bucket{" + labels + `,le="` + bound + `"} ` + count + "\n")
	}
	text.WriteString(name + "_sum{" + labels + "} " + sum + "\n" + name + "_count{" + labels + "} 1\n")
	return text.String()
}
