package provisioning

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestUnknownClassGetsNoMetricSeries(t *testing.T) {
	f := newFlow(t)
	for _, name := range []string{"invented", "another", "a third"} {
		claim := f.syncClaim().DeepCopy()
		claim.Spec.StorageClassName = ptr.To(name)
		f.must(f.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "ns"))
		f.reconcile(true)
	}
	failed := f.Metrics.PersistentVolumeClaimProvisionFailedTotal
	if series := testutil.CollectAndCount(failed); series != 1 || testutil.ToFloat64(failed.WithLabelValues("", "")) != 3 {
		t.Errorf("%d series, the series without a class has %v; want 1 series with 3", series,
			testutil.ToFloat64(failed.WithLabelValues("", "")))
	}
	claim := f.syncClaim().DeepCopy()
	claim.Spec.StorageClassName = ptr.To("class")
	f.must(f.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "ns"))
	f.reconcile(false)
	if made := testutil.ToFloat64(f.Metrics.PersistentVolumeClaimProvisionTotal.WithLabelValues("class", "")); made != 1 {
		t.Errorf("%v volumes of the class were counted, want 1", made)
	}
}
