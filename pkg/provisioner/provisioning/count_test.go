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

// csi-provisioner counts each pass over an unbound claim of its that ends in an error,
// also in one that is not retried.
func TestFailuresAreCountedAsUpstream(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*flow)
		failure bool
	}{
		"the selected node is gone": {func(f *flow) {
			f.change(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" })
		}, false},
		"a populator serves the claim": {func(f *flow) {
			f.change(func(claim *v1.PersistentVolumeClaim) {
				claim.Spec.DataSourceRef = &v1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Backup", Name: "b"}
			})
		}, false},
		"the name is taken": {func(f *flow) {
			f.must(f.Volumes.GetStore().Add(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}))
			f.must(f.client.Tracker().Add(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}))
		}, true},
		"the claim is being deleted": {func(f *flow) {
			f.inject(codes.DeadlineExceeded, false, 1)
			f.step(true)
			f.Metrics.PersistentVolumeClaimProvisionFailedTotal.Reset()
			f.remove()
			f.inject(codes.Unavailable, false, 1)
		}, true},
		"the driver fails":     {func(f *flow) { f.inject(codes.Internal, false, 1) }, true},
		"the driver refuses":   {func(f *flow) { f.inject(codes.InvalidArgument, false, 1) }, false},
		"the class is missing": {func(f *flow) { f.must(f.Classes.GetStore().Replace(nil, "")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			tc.prepare(f)
			f.now()
			if err := f.Reconcile(t.Context(), flowClaim); (err != nil) != tc.failure {
				t.Errorf("Reconcile = %v", err)
			}
			f.counted(1)
		})
	}
	t.Run("another node is needed", func(t *testing.T) {
		f, d := newDirectoryFlow(t)
		d.unprepared = &provision.UnsuitableNode{Sentence: "no directories on that node"}
		f.Node = func(_ context.Context, name string) (*v1.Node, error) { return newNode(name, ""), nil }
		f.delayBinding()
		f.change(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "n1" })
		f.step(false)
		f.counted(1)
		if node, selected := f.now().Annotations[storage.AnnSelectedNode]; selected {
			t.Errorf("the node %s is still selected", node)
		}
	})
	t.Run("the claim is bound elsewhere", func(t *testing.T) {
		f := newFlow(t)
		f.inject(codes.DeadlineExceeded, false, 2)
		f.step(true)
		f.change(func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeName = "another" })
		f.step(true)
		f.counted(1)
	})
}

// counted compares the number of failed tries, with the class and without.
func (f *flow) counted(want float64) {
	f.Helper()
	failed := f.Metrics.PersistentVolumeClaimProvisionFailedTotal
	if count := testutil.ToFloat64(failed.WithLabelValues("class", "")) + testutil.ToFloat64(failed.WithLabelValues("", "")); count != want {
		f.Errorf("%v failed tries, want %v", count, want)
	}
}
