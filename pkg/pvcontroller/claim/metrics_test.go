package claim

import (
	"errors"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestAFailedAssignmentOfAClassCountsAsTryAndAsError(t *testing.T) {
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

func TestProvisioningIsMeasuredFromTheFirstTryUntilTheClaimIsBound(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/host-path", MountOptions: []string{"ro"}}
	c, _ := stage(t, pendingClaim(ofClass("local")), class)
	registry := metrics.NewKubeRegistry()
	if err := c.Operations.Register(registry.Register); err != nil {
		t.Fatal(err)
	}
	reconcile(t, c)
	if err := c.Provision(t.Context(), "ns/claim"); err == nil {
		t.Fatal("provisioned with mount options, which host-path does not have")
	}
	able := class.DeepCopy()
	able.MountOptions = nil
	if err := c.Caches.Classes.GetStore().Update(able); err != nil {
		t.Fatal(err)
	}
	if err := c.Provision(t.Context(), "ns/claim"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the cache hears of the volume, then the claim is bound
		reconcile(t, c)
	}
	want := `
		# HELP volume_operation_errors_total [ALPHA] Number of failed tries of operations
		# TYPE volume_operation_errors_total counter
		volume_operation_errors_total{operation_name="provision",plugin_name="kubernetes.io/host-path"} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "volume_operation_errors_total"); err != nil {
		t.Error(err)
	}
	counted, err := testutil.GetHistogramVecFromGatherer(registry, "volume_operation_total_seconds", map[string]string{"plugin_name": "kubernetes.io/host-path", "operation_name": "provision"})
	if err != nil || counted.GetAggregatedSampleCount() != 1 {
		t.Errorf("%d operations were measured (%v), want one", counted.GetAggregatedSampleCount(), err)
	}
}
