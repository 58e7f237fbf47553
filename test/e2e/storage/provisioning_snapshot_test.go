package storage

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestSnapshotIsRestoredWhenReady(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	client := s.SnapshotClient()
	s.CreateClaim("origin", harness.DeleteClass)
	snapshot := s.TakeSnapshot(client, "snapshot", s.AwaitBound("origin"))
	waiting := s.CreateClaim("restored", harness.DeleteClass, harness.FromSnapshot("snapshot"))
	if message := s.AwaitEvent(waiting, "ProvisioningFailed"); !strings.Contains(message, "not Ready") {
		t.Errorf("the event does not say that the snapshot is not ready: %s", message)
	}
	block := v1.PersistentVolumeBlock
	converted := s.CreateClaim("converted", harness.DeleteClass, harness.FromSnapshot("snapshot"),
		func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
	ready := true
	snapshot.Status.ReadyToUse = &ready
	_, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).UpdateStatus(s.Ctx, snapshot, metav1.UpdateOptions{})
	s.Must(err, "make snapshot ready")

	restored := s.AwaitBound("restored")
	if got := s.StoredVolume(restored).Source.Snapshot; !strings.HasPrefix(got, "snap-") {
		t.Errorf("the volume was created from the snapshot %q", got)
	}
	refusals := s.WatchEvents("ProvisioningFailed")
	refusals.Await(s, converted.Name, provision.AllowModeChange)
	s.DeleteClaim(converted.Name)
	s.AwaitClaimGone(converted.Name)
	err = wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Get(ctx, snapshot.Name, metav1.GetOptions{})
		return err == nil && !finalizer.Has(now.Finalizers, finalizer.SnapshotSource), err
	})
	s.Must(err, "wait until the snapshot has no source finalizer")
}
