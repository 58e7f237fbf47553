package provisioning

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

var failureCases = map[string]struct {
	prepare func(*flow)
	failure bool
}{
	"selected node deleted": {func(f *flow) {
		f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" })
	}, false},
	"claim of a populator": {func(f *flow) {
		f.editClaim(func(claim *v1.PersistentVolumeClaim) {
			claim.Spec.DataSourceRef = &v1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Backup", Name: "b"}
		})
	}, false},
	"name conflict": {func(f *flow) {
		f.must(f.Volumes.GetStore().Add(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}))
		f.must(f.client.Tracker().Add(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}))
	}, true},
	"claim being deleted": {func(f *flow) {
		f.injectFault(codes.DeadlineExceeded, false, 1)
		f.reconcile(true)
		f.Metrics.PersistentVolumeClaimProvisionFailedTotal.Reset()
		f.setDeleting()
		f.injectFault(codes.Unavailable, false, 1)
	}, true},
	"driver fails":   {func(f *flow) { f.injectFault(codes.Internal, false, 1) }, true},
	"driver refuses": {func(f *flow) { f.injectFault(codes.InvalidArgument, false, 1) }, false},
	"class missing":  {func(f *flow) { f.must(f.Classes.GetStore().Replace(nil, "")) }, true},
}

// csi-provisioner counts each failed pass over an unbound claim, with or without a retry.
func TestFailuresAreCountedAsUpstream(t *testing.T) {
	for name, tc := range failureCases {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			tc.prepare(f)
			f.syncClaim()
			if err := f.Reconcile(t.Context(), flowClaim); (err != nil) != tc.failure {
				t.Errorf("Reconcile = %v", err)
			}
			f.expectFailureCount(1)
		})
	}
	t.Run("claim rescheduled", func(t *testing.T) {
		f, d := newDirectoryFlow(t)
		d.unprepared = &provision.UnsuitableNode{Sentence: "no directories on that node"}
		f.Nodes = liveNodes(func(_ context.Context, name string) (*v1.Node, error) { return newNode(name, ""), nil })
		f.delayBinding()
		f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "n1" })
		f.reconcile(false)
		f.expectFailureCount(1)
		if node, selected := f.syncClaim().Annotations[storage.AnnSelectedNode]; selected {
			t.Errorf("the node %s is still selected", node)
		}
	})
	t.Run("claim bound to another volume", func(t *testing.T) {
		f := newFlow(t)
		f.injectFault(codes.DeadlineExceeded, false, 2)
		f.reconcile(true)
		f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeName = "another" })
		f.reconcile(true)
		f.expectFailureCount(1)
	})
}

// expectFailureCount compares the failure metric, with the class and without.
func (f *flow) expectFailureCount(want float64) {
	f.Helper()
	failed := f.Metrics.PersistentVolumeClaimProvisionFailedTotal
	if count := testutil.ToFloat64(failed.WithLabelValues("class", "")) +
		testutil.ToFloat64(failed.WithLabelValues("", "")); count != want {
		f.Errorf("%v failed tries, want %v", count, want)
	}
}
