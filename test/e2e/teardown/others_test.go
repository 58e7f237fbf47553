package teardown

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Row 05: two clusters have one storage system, and a PersistentVolume each for one disk.
func TestDiskOfTwoClustersIsKept(t *testing.T) {
	r := newRig(t, stock)
	shared, own := r.addDynamic("shared", harness.DeleteClass), r.addDynamic("own", harness.DeleteClass)
	other := &rig{Session: harness.Own(t, harness.Setup{NoPrograms: true})}
	other.CreateVolume(shared.handle, v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.CSI.Driver = r.Driver.DriverName
	})
	both := "--other-kubeconfig=" + other.Plane.AdminKubeconfig
	alone, plan := r.document(r.admin(0, "-o", "json")), r.document(r.admin(0, both, "-o", "json"))
	if planOf(alone, shared.handle).Plan != core.PlanDelete || planOf(plan, shared.handle).Plan != core.PlanKeep ||
		planOf(plan, shared.handle).Reason != "HandleShared" {
		t.Errorf("the plans: %+v, with the other cluster %+v", alone.Items, plan.Items)
	}
	report := r.document(r.admin(0, "--confirm="+r.id(), both, "-o", "json"))
	if got := fates(report); got[shared.handle] != core.Kept || got[own.handle] != core.Gone ||
		planOf(report, shared.handle).Reason != "HandleShared" {
		t.Errorf("the report: %+v", report.Items)
	}
	r.expectDisks(keep(shared), own)
	if written := other.written(0); len(written) > 0 {
		t.Errorf("the command wrote into the other cluster: %q", written)
	}
}

// planOf returns the item with the external ID.
func planOf(document *core.Document, id string) core.Item {
	for _, item := range document.Items {
		if item.ExternalID == id {
			return item
		}
	}
	return core.Item{}
}
