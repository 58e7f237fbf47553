package snapshots_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/snapshots"
)

// A claim of another provisioner leaves the cache when it is bound. Its snapshot loses the
// finalizer then, without a sweep.
func TestSnapshotOfForeignClaimLosesFinalizer(t *testing.T) {
	w, claim := newWorld(t, 0, snapshot("snap", ours)), from("snap", v1.ClaimPending)
	must(t, w.client.Tracker().Add(claim))
	claims, _ := provisioning.NewClaims(w.client, provisioning.Names{Driver: "ours.example.com"})
	c, err := snapshots.New(snapshots.Config{Client: w.client, Metadata: w.metadata, REST: w.updating(), Recorder: w.events, Claims: claims})
	must(t, err)
	go claims.RunWithContext(t.Context())
	cache.WaitForCacheSync(t.Context().Done(), claims.HasSynced)
	must(t, c.Watch(t.Context()))
	go c.Run(t.Context())
	bound := claim.DeepCopy()
	bound.ResourceVersion, bound.Status.Phase, bound.Spec.VolumeName = "2", v1.ClaimBound, "static"
	_, err = w.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), bound, metav1.UpdateOptions{})
	must(t, err)
	for end := time.After(20 * time.Second); w.finalizers(t, "snap") != ""; {
		select {
		case <-end:
			t.Fatal("the snapshot still has the finalizer")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
