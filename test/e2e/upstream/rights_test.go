package upstream

import (
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// TestUpstreamSidecarRightsSuffice runs our program with the service account and the
// rights of upstream's manifest.
func TestUpstreamSidecarRightsSuffice(t *testing.T) {
	s := swapped(harness.Join(t, harness.Setup{}), "", "--leader-election --leader-election-namespace="+deploy.Namespace)
	for _, o := range []harness.DeletionOrder{harness.ClaimOnly, harness.VolumeThenClaim} {
		s.CreateClaim("claim", s.Namespace)
		volume := s.AwaitBound("claim")
		if o == harness.VolumeThenClaim {
			s.DeleteVolume(volume.Name)
		}
		s.DeleteClaim("claim")
		s.AwaitVolumeGone(volume.Name)
		s.AwaitClaimGone("claim")
		s.ExpectReclaimed(volume)
	}
}

// swapped returns a session whose provisioner is ours, with the service account of
// upstream's sidecar.
func swapped(s *harness.Session, driver, provisioner string) *harness.Session {
	s.T.Helper()
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, sandbox.UpstreamSidecarUser)
	s.Must(err, "get a kubeconfig of upstream's sidecar")
	s = s.WithOwnDriverAs(kubeconfig, s.Namespace+".swapped", driver, provisioner)
	s.CreateClass()
	s.T.Cleanup(func() {
		if s.T.Failed() {
			text, _ := os.ReadFile(s.Provisioner.LogFile())
			s.T.Log(string(text))
		}
	})
	return s
}

// Upstream's rights allow to update snapshots, not to patch them. No other program in this
// cluster adds or removes source finalizers.
func TestUpstreamSidecarRightsSufficeForSourceFinalizers(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true})
	client := s.SnapshotClient()
	s.CreateSnapshot(client, "left") // with the finalizer of upstream's sidecar
	s = swapped(s, "--faults=../testdata/slow.yaml", "--snapshot-orphan-sweep-interval=1s")
	s.AwaitSnapshot(client, "left", false)

	s.CreateClaim("origin", s.Namespace)
	origin := s.AwaitBound("origin")
	snapshot, ready := s.TakeSnapshot(client, "source", origin), true
	snapshot.Finalizers = []string{"example.com/other"}
	snapshot, err := client.SnapshotV1().VolumeSnapshots(s.Namespace).Update(s.Ctx, snapshot, metav1.UpdateOptions{})
	s.Must(err, "add a foreign finalizer")
	snapshot.Status.ReadyToUse = &ready
	_, err = client.SnapshotV1().VolumeSnapshots(s.Namespace).UpdateStatus(s.Ctx, snapshot, metav1.UpdateOptions{})
	s.Must(err, "make snapshot ready")
	s.CreateClaim("restored", s.Namespace, harness.FromSnapshot("source"))
	s.AwaitSnapshot(client, "source", true)
	restored := s.AwaitBound("restored")
	s.AwaitSnapshot(client, "source", false)

	s.CreateClaim("clone", s.Namespace, harness.CloneOf("origin"))
	s.AwaitClaim("origin", "is protected",
		func(c *v1.PersistentVolumeClaim) bool { return finalizer.Has(c.Finalizers, finalizer.CloneSource) })
	s.DeleteClaim("origin")
	clone := s.AwaitBound("clone")
	s.AwaitClaimGone("origin")
	for _, volume := range []*v1.PersistentVolume{restored, clone} {
		if source := s.StoredVolume(volume).Source; source.Snapshot == "" && source.Volume == "" {
			t.Errorf("the volume %s has no source", volume.Name)
		}
	}
	if events := s.AllEvents(); strings.Contains(events, "SnapshotProtectionMissing") {
		t.Errorf("an event reports an unprotected snapshot: %s", events)
	}
}
