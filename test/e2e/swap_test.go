package e2e

import (
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// TestTheRightsOfUpstreamsSidecarAreEnough swaps the program and nothing else: it
// keeps the service account, whose rights are those of upstream's manifest.
func TestTheRightsOfUpstreamsSidecarAreEnough(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true})).swapped("", "--leader-election --leader-election-namespace="+deploy.Namespace)
	for _, o := range []order{claimOnly, volumeThenClaim} {
		s.createClaim("claim", s.namespace)
		volume := s.awaitBound("claim")
		if o == volumeThenClaim {
			s.deleteVolume(volume.Name)
		}
		s.deleteClaim("claim")
		s.awaitVolumeGone(volume.Name)
		s.awaitClaimGone("claim")
		s.expectReclaimed(volume)
	}
}

// swapped is a scene with a driver whose provisioner, ours, has the service account of
// upstream's.
func (s *scene) swapped(driver, provisioner string) *scene {
	s.t.Helper()
	s.must(s.grantUpstream(s.ctx), "grant upstream's rights")
	kubeconfig, err := s.plane.Kubeconfig(s.ctx, sandbox.UpstreamSidecarUser)
	s.must(err, "get a kubeconfig of upstream's sidecar")
	s = s.besideAs(kubeconfig, s.namespace+".swapped", driver, provisioner)
	s.createClass()
	s.t.Cleanup(func() {
		if s.t.Failed() {
			text, _ := os.ReadFile(s.provisioner.LogFile())
			s.t.Log(string(text))
		}
	})
	return s
}

// Upstream may update snapshots and not patch them. Nobody else is in this cluster who
// could protect a source in the place of the provisioner, or let it go.
func TestTheRightsOfUpstreamsSidecarAreEnoughToProtectSourcesAndLetThemGo(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true}))
	client := s.snapshots()
	s.createSnapshot(client, "left") // protected by upstream's sidecar, before it was swapped
	s = s.swapped("--faults=testdata/slow.yaml", "--snapshot-orphan-sweep-interval=1s")
	s.awaitSnapshot(client, "left", false)

	s.createClaim("origin", s.namespace)
	origin := s.awaitBound("origin")
	snapshot, ready := s.takeSnapshot(client, "source", origin), true
	snapshot.Finalizers = []string{"example.com/other"}
	snapshot, err := client.SnapshotV1().VolumeSnapshots(s.namespace).Update(s.ctx, snapshot, metav1.UpdateOptions{})
	s.must(err, "add a foreign finalizer")
	snapshot.Status.ReadyToUse = &ready
	_, err = client.SnapshotV1().VolumeSnapshots(s.namespace).UpdateStatus(s.ctx, snapshot, metav1.UpdateOptions{})
	s.must(err, "make snapshot ready")
	s.createClaim("restored", s.namespace, fromSnapshot("source"))
	s.awaitSnapshot(client, "source", true)
	restored := s.awaitBound("restored")
	s.awaitSnapshot(client, "source", false)

	s.createClaim("clone", s.namespace, cloneOf("origin"))
	s.awaitClaim("origin", "is protected", func(c *v1.PersistentVolumeClaim) bool { return finalizer.Has(c.Finalizers, finalizer.CloneSource) })
	s.deleteClaim("origin")
	clone := s.awaitBound("clone")
	s.awaitClaimGone("origin")
	for _, volume := range []*v1.PersistentVolume{restored, clone} {
		if source := s.inStorage(volume).Source; source.Snapshot == "" && source.Volume == "" {
			t.Errorf("the volume %s was made from nothing", volume.Name)
		}
	}
	if events := s.allEvents(); strings.Contains(events, "SnapshotProtectionMissing") {
		t.Errorf("an event says that nothing protects the snapshot: %s", events)
	}
}
