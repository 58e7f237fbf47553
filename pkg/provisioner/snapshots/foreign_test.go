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
// finalizer then without a sweep, unless another process serves the claim: if each process reacted, each
// would list the claims of the namespace.
func TestProcessOfClaimReleasesSnapshot(t *testing.T) {
	w := newWorld(t, 0, snapshot("elsewhere", ours), snapshot("here", ours))
	elsewhere, here := from("elsewhere", v1.ClaimPending), from("here", v1.ClaimPending)
	must(t, w.client.Tracker().Add(elsewhere))
	must(t, w.client.Tracker().Add(here))
	claims, _ := provisioning.NewClaims(w.client, provisioning.Names{Driver: "ours.example.com"})
	c, err := snapshots.New(snapshots.Config{
		Client: w.client, Metadata: w.metadata, REST: w.updating(), Recorder: w.events, Claims: claims,
		Elsewhere: func(claim *v1.PersistentVolumeClaim) bool { return claim.Name == elsewhere.Name },
	})
	must(t, err)
	go claims.RunWithContext(t.Context())
	cache.WaitForCacheSync(t.Context().Done(), claims.HasSynced)
	must(t, c.Watch(t.Context()))
	go c.Run(t.Context())
	for _, claim := range []*v1.PersistentVolumeClaim{elsewhere, here} {
		bound := claim.DeepCopy()
		bound.ResourceVersion, bound.Status.Phase, bound.Spec.VolumeName = "2", v1.ClaimBound, "static"
		_, err = w.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), bound, metav1.UpdateOptions{})
		must(t, err)
	}
	w.awaitReleased(t, "here")
	if got := w.finalizers(t, "elsewhere"); got != ours {
		t.Errorf("a process that does not serve the claim left the finalizers %q", got)
	}
	must(t, c.Sweep(t.Context()))
	w.awaitReleased(t, "elsewhere")
}

func (w *world) awaitReleased(t *testing.T, name string) {
	t.Helper()
	for end := time.After(20 * time.Second); w.finalizers(t, name) != ""; {
		select {
		case <-end:
			t.Fatalf("the snapshot %s still has the finalizer", name)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
