package claim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// bindAndRestore reserves volume v for the claim. No watch shows the write: etcd is restored with a raised revision,
// and the caches are filled anew.
func bindAndRestore(t *testing.T) (*Controller, *controller.Stepped) {
	t.Helper()
	c, _ := newController(t, pendingClaim(), free("v", "1"))
	queue := c.Loops()[0].Step()
	bindHalf(t, c)
	restored := free("v", "1")
	if err := c.Client.(*fake.Clientset).Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"),
		restored, ""); err != nil {
		t.Fatal(err)
	}
	show(t, c, restored)
	c.volumeChanged(free("v", "1"), restored)
	return c, queue
}

func TestPairWhoseReservationWasLostIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := bindAndRestore(t)
		for range 3 {
			_ = c.Reconcile(t.Context(), "ns/claim")
			<-time.After(time.Minute)
		}
		claim, err := c.Client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
		if err != nil || claim.Spec.VolumeName != "v" {
			t.Errorf("the claim names %q, %v: it waits for an event that never comes", claim.Spec.VolumeName, err)
		}
	})
}

// The claim is gone; another one needs a volume. The loop of volumes finds that the reservation was lost.
func TestVolumeWhoseReservationWasLostIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, queue := bindAndRestore(t)
		c.claimGone(pendingClaim())
		other := pendingClaim(func(claim *v1.PersistentVolumeClaim) { claim.Name, claim.UID = "other", "other" })
		if err := c.Caches.Claims.GetStore().Add(other); err != nil {
			t.Fatal(err)
		}
		queue.Reconcile(t.Context(), "ns/other")
		<-time.After(time.Minute)
		for _, key := range []string{"ns/claim", "ns/other"} {
			queue.Reconcile(t.Context(), key)
		}
		_ = c.Versions.AwaitVolume(t.Context(), c.Client, c.Caches.Volume("v"))
		if due, _ := queue.Keys(); !slices.Contains(due, "ns/other") {
			t.Fatalf("enqueued %q, want the claim that needs a volume", due)
		}
		queue.Reconcile(t.Context(), "ns/other")
		now, err := c.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
		if err != nil || now.Spec.ClaimRef == nil || now.Spec.ClaimRef.Name != "other" {
			t.Errorf("claimRef %v, %v", now.Spec.ClaimRef, err)
		}
	})
}
