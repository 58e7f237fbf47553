package e2e

import (
	"fmt"
	"testing"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// A user changes the image, and changes it back. Both keep one lease and one set of
// objects: whoever stands by does nothing, and whoever takes over makes nothing anew.
func TestLeaseAndCapacityObjectsAreHandedOverToUpstreamAndBack(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true, driver: twoZones}))
	s.createNode("node-a", map[string]string{"zone": "a"})
	s.createNode("node-b", map[string]string{"zone": "b"})
	args := []string{
		"--enable-capacity", "--capacity-poll-interval=1s", "--capacity-ownerref-level=-1", "--kube-api-capacity-qps=1000", "--kube-api-capacity-burst=1000",
		"--leader-election", "--leader-election-namespace=" + deploy.Namespace, "--leader-election-labels=team:storage",
		"--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s", "--feature-gates=Topology=true,ReleaseLeaderElectionOnExit=true",
	}
	s.createClaim("claim", deleteClass)

	theirs := s.startTheirs("upstream", args...)
	holder := s.awaitLeader("")
	volume := s.awaitBound("claim")
	both := fmt.Sprintf("wait/a=%d wait/b=%d", s.left("a"), s.left("b"))
	before := s.awaitCapacity("upstream has published", both)

	ours := s.startSidecar(s.driver, "ours", nil, args...)
	s.awaitLog(ours, "Filling caches")
	_ = theirs.Stop(s.ctx) // it reports the lost lease as an error
	holder = s.awaitLeader(holder)
	s.awaitLog(ours, "Publishing capacity")
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
	gib := int64(1) << 30
	after := s.awaitCapacity("ours have taken over", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))

	theirs = s.startTheirs("upstream-again", args...)
	t.Cleanup(func() { _ = theirs.Kill() })
	s.stopSidecar(ours)
	s.awaitLeader(holder)
	s.makeVolume("more")
	back := s.awaitCapacity("upstream has taken over again", fmt.Sprintf("wait/a=%d wait/b=%d", s.left("a"), s.left("b")))
	for i := range before {
		if before[i].UID != after[i].UID || after[i].UID != back[i].UID {
			t.Errorf("object %d was made anew: %s, %s, %s", i, before[i].Name, after[i].Name, back[i].Name)
		}
	}
	if s.logContains(ours, "Reconciling failed") {
		t.Error("ours failed at something while it took over")
	}
}

// startTheirs starts the real csi-provisioner beside the driver of the cluster.
func (s *scene) startTheirs(name string, args ...string) *sandbox.Process {
	s.t.Helper()
	s.must(s.grantUpstream(s.ctx), "grant upstream's rights")
	process, err := s.plane.StartUpstreamProvisioner(s.ctx, s.driver, sandbox.Controller{Name: name, Env: []string{"NAMESPACE=" + deploy.Namespace}, Args: args})
	s.must(err, "start upstream's sidecar")
	return process
}
