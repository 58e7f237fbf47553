package snapshots_test

import (
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/provisioner/snapshots"
)

// A claim is created after the list of claims that finds the snapshot unneeded, and its
// worker reaches the snapshot before the finalizer is removed.
func TestSnapshotIsProtectedAfterRemovalOfFinalizer(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", foreign, ours))
	synctest.Test(t, func(t *testing.T) {
		protected := make(chan error, 1)
		w.client.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			must(t, w.claims.GetStore().Add(from("snap", v1.ClaimPending)))
			go func() {
				w.AwaitRemoval("ns/snap")
				source, err := w.metadata.Resource(snapshots.Resource).Namespace("ns").Get(t.Context(), "snap", metav1.GetOptions{})
				if err == nil {
					err = w.Protect(t.Context(), source)
				}
				protected <- err
			}()
			synctest.Wait() // the worker waits, or is done
			return true, &v1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		})
		must(t, w.Reconcile(t.Context(), "ns/snap"))
		must(t, <-protected)
		must(t, w.Reconcile(t.Context(), "ns/snap"))
		if got := w.finalizers(t, "snap"); got != foreign+" "+ours {
			t.Errorf("a volume is created from the snapshot with finalizers %q", got)
		}
	})
}
