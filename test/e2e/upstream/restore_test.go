package upstream

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The backup is from before a claim had its first pod. After the restore the claim is unbound, its PersistentVolume is gone, and
// its disk is full of data. CreateVolume finds the disk by its name, in a zone that does not satisfy the request any more.
func TestDiskOfRestoredClaimIsKept(t *testing.T) {
	t.Parallel()
	for side, setup := range map[string]harness.Setup{"ours": {}, "stock": {UpstreamLoops: true, UpstreamSidecar: true}} {
		for revision, bump := range map[string]uint64{"same revision": 0, "raised revision": 1_000_000_000} {
			t.Run(side+", "+revision, func(t *testing.T) {
				t.Parallel()
				s := harness.Own(t, harness.Setup{NoPrograms: true, Restarts: true, DriverFlags: harness.TwoZones})
				s.CreateNode("node-a", map[string]string{"zone": "a"})
				s.CreateClaim("data", harness.WaitClass)
				backup := filepath.Join(s.Dir, "backup")
				s.Must(s.Plane.Restart(s.Ctx, func() error { return s.Plane.SaveEtcd(backup) }), "save etcd")

				s.Must(s.StartPrograms(s.Ctx, setup), "start programs")
				selectNode(s)
				disk := harness.Handle(s.AwaitBound("data"))
				killPrograms(s)
				s.Must(s.Plane.Restart(s.Ctx, func() error { return s.Plane.RestoreEtcd(s.Ctx, backup, bump) }), "restore etcd")
				moveDisks(s)
				s.Must(s.StartPrograms(s.Ctx, setup), "start programs")
				selectNode(s)
				defer func() { // also if the claim is never bound
					if deletions := s.CountCalls("DeleteVolume", disk); deletions > 0 {
						t.Errorf("the disk was deleted %d times", deletions)
					}
				}()
				if found := harness.Handle(s.AwaitBound("data")); found != disk {
					t.Errorf("the claim has the disk %s, before it had %s", found, disk)
				}
			})
		}
	}
}

// selectNode selects the node of the claim, as the scheduler does for its pod.
func selectNode(s *harness.Session) {
	s.T.Helper()
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Ctx, "data", metav1.GetOptions{})
	s.Must(err, "read claim")
	if claim.Status.Phase != v1.ClaimPending || claim.Spec.VolumeName != "" {
		s.T.Fatalf("the claim is %s, with volume %q", claim.Status.Phase, claim.Spec.VolumeName)
	}
	s.Annotate(claim, storage.AnnSelectedNode, "node-a")
}

func killPrograms(s *harness.Session) {
	s.T.Helper()
	for _, process := range s.Processes() {
		s.Must(process.Kill(), "kill "+process.Name())
		s.ExpectEnd(process)
	}
}

// moveDisks starts the driver again, which from then on returns each disk in another zone than the requested one.
func moveDisks(s *harness.Session) {
	s.T.Helper()
	s.StopProcess(s.Driver)
	faults := filepath.Join(s.Dir, "faults.yaml")
	s.Must(os.WriteFile(faults, []byte("- {method: CreateVolume, response: "+string(csimock.OtherTopology)+"}\n"), 0o600),
		"write faults")
	s.Must(s.StartDriver(s.Ctx, "--with=topology", "--topology=zone=a", "--topology=zone=b", "--capacity=1Gi",
		"--faults="+faults), "start driver")
}
