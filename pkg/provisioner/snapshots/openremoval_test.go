package snapshots_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/provisioner/snapshots"
)

// The API server may execute the removal of the finalizer after its answer is lost. A volume that is
// restored meanwhile finds the finalizer, and the removal then takes it away.
func TestSnapshotStaysProtectedAfterOpenRemoval(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", foreign, ours))
	var late func()
	w.metadata.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if late != nil {
			return false, nil, nil
		}
		late = func() {
			_, _, err := clienttesting.ObjectReaction(w.metadata.Tracker())(action)
			must(t, err)
		}
		return true, nil, apierrors.NewTimeoutError("scripted", 0)
	})
	if err := w.Reconcile(t.Context(), "ns/snap"); err == nil {
		t.Fatal("the removal of the finalizer has succeeded")
	}
	claim := from("snap", v1.ClaimPending)
	must(t, w.claims.GetStore().Add(claim))
	must(t, w.client.Tracker().Add(claim))
	w.AwaitRemoval("ns/snap")
	source, err := w.metadata.Resource(snapshots.Resource).Namespace("ns").Get(t.Context(), "snap", metav1.GetOptions{})
	must(t, err)
	if err := w.Protect(t.Context(), source); err != nil {
		return // the volume is requested later
	}
	late()
	if got := w.finalizers(t, "snap"); got != foreign+" "+ours {
		t.Errorf("a volume is created from the snapshot with finalizers %q", got)
	}
}
