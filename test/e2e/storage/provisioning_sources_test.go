package storage

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestDeletedCloneSourceStaysUntilCloneIsBound(t *testing.T) {
	s := harness.Join(t, harness.Setup{DriverFlags: "--faults=../testdata/slow.yaml"})
	s.CreateClaim("origin", harness.DeleteClass)
	origin := s.AwaitBound("origin")
	s.CreateClaim("clone", harness.DeleteClass, harness.CloneOf("origin"))
	s.AwaitClaim("origin", "is protected",
		func(c *v1.PersistentVolumeClaim) bool { return finalizer.Has(c.Finalizers, finalizer.CloneSource) })
	s.DeleteClaim("origin")
	s.AwaitClaim("clone", "is bound", func(c *v1.PersistentVolumeClaim) bool {
		if c.Status.Phase == v1.ClaimBound {
			return true
		}
		claims := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace)
		source, err := claims.Get(s.Ctx, "origin", metav1.GetOptions{})
		if err == nil && finalizer.Has(source.Finalizers, finalizer.CloneSource) {
			return false
		}
		// The clone may have been bound since the event.
		if now, failed := claims.Get(s.Ctx, "clone", metav1.GetOptions{}); failed != nil || now.Status.Phase != v1.ClaimBound {
			t.Errorf("the source was deleted before its clone was bound: %v, %v", err, failed)
		}
		return false
	})
	if calls := s.CountCalls("DeleteVolume", harness.Handle(origin)); calls != 0 && s.IsStored(harness.Handle(origin)) {
		t.Error("the volume of the source was deleted too early")
	}
	s.AwaitClaimGone("origin")
	s.AwaitVolumeGone(origin.Name)
	s.ExpectReclaimed(origin)
}

func TestLeftoverSnapshotFinalizersAreRemoved(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true})
	client := s.SnapshotClient()
	s.CreateSnapshot(client, "orphan")
	s.CreateSnapshot(client, "needed")
	s.CreateClaim("waiting", harness.DeleteClass, harness.FromSnapshot("needed")) // which never becomes ready
	s.StartProvisioner(s.Driver, "provisioner-0", nil, "--snapshot-orphan-sweep-interval=300ms")
	s.AwaitSnapshot(client, "orphan", false)
	s.CreateSnapshot(client, "orphan-2") // for the next sweep
	s.AwaitSnapshot(client, "orphan-2", false)
	s.AwaitSnapshot(client, "needed", true)
	s.DeleteClaim("waiting")
	s.AwaitSnapshot(client, "needed", false)
}
