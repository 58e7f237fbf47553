package upstream

import (
	"fmt"
	"testing"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// A user replaces the image and later restores it. Both programs use the same lease and
// the same capacity objects: the standby writes nothing, and the new leader reuses them.
func TestUpstreamTakesOverLeaseAndCapacityObjects(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true, DriverFlags: harness.TwoZones})
	s.CreateNode("node-a", map[string]string{"zone": "a"})
	s.CreateNode("node-b", map[string]string{"zone": "b"})
	args := []string{
		"--enable-capacity", "--capacity-poll-interval=1s", "--capacity-ownerref-level=-1", "--kube-api-capacity-qps=1000",
		"--kube-api-capacity-burst=1000",
		"--leader-election", "--leader-election-namespace=" + deploy.Namespace, "--leader-election-labels=team:storage",
		"--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s",
		"--feature-gates=Topology=true,ReleaseLeaderElectionOnExit=true",
	}
	s.CreateClaim("claim", harness.DeleteClass)

	theirs := startUpstreamSidecar(s, "upstream", args...)
	holder := s.AwaitLeader("")
	volume := s.AwaitBound("claim")
	both := fmt.Sprintf("wait/a=%d wait/b=%d", s.FreeCapacity("a"), s.FreeCapacity("b"))
	before := s.AwaitCapacity("upstream has published", both)

	ours := s.StartProvisioner(s.Driver, "ours", nil, args...)
	s.AwaitLog(ours, "Filling caches")
	_ = theirs.Stop(s.Ctx) // csi-provisioner ends with an error when it loses its lease
	holder = s.AwaitLeader(holder)
	s.AwaitLog(ours, "Publishing capacity")
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	gib := int64(1) << 30
	after := s.AwaitCapacity("ours have taken over", fmt.Sprintf("wait/a=%d wait/b=%d", gib, gib))

	theirs = startUpstreamSidecar(s, "upstream-again", args...)
	t.Cleanup(func() { _ = theirs.Kill() })
	s.StopProvisioner(ours)
	s.AwaitLeader(holder)
	s.CreateStoredVolume("more")
	back := s.AwaitCapacity("upstream has taken over again", fmt.Sprintf("wait/a=%d wait/b=%d", s.FreeCapacity("a"), s.FreeCapacity("b")))
	for i := range before {
		if before[i].UID != after[i].UID || after[i].UID != back[i].UID {
			t.Errorf("object %d was created again: %s, %s, %s", i, before[i].Name, after[i].Name, back[i].Name)
		}
	}
	if s.LogContains(ours, "Reconciling failed") {
		t.Error("ours failed at something while it took over")
	}
}

// startUpstreamSidecar starts the real csi-provisioner for the driver of the cluster.
func startUpstreamSidecar(s *harness.Session, name string, args ...string) *sandbox.Process {
	s.T.Helper()
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	process, err := s.Plane.StartUpstreamProvisioner(s.Ctx, s.Driver,
		sandbox.Controller{Name: name, Env: []string{"NAMESPACE=" + deploy.Namespace}, Args: args})
	s.Must(err, "start upstream's sidecar")
	return process
}
