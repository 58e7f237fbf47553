package audit

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestAdoptedVolumeIsDeletedTheNormalWay adopts an orphan: nothing binds or deletes it until
// its policy becomes Delete.
func TestAdoptedVolumeIsDeletedTheNormalWay(t *testing.T) {
	for name, setup := range map[string]harness.Setup{
		"our programs":      {},
		"upstream programs": {UpstreamLoops: true, UpstreamSidecar: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, setup)
			orphan := store(s, "orphan-of-"+s.Namespace, "")
			args := []string{"--csi-address=" + s.Driver.Socket, "--kubeconfig=" + s.Plane.AdminKubeconfig, "--settle=0s", "--adopt=" + orphan}
			printed := command(s, args...)
			if printed.status != 0 {
				t.Fatalf("exit code %d: %s", printed.status, printed.errors)
			}
			volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
			s.Must(err, "list volumes")
			for _, volume := range volumes.Items {
				if volume.Spec.CSI != nil && volume.Spec.CSI.VolumeHandle == orphan {
					t.Fatalf("--adopt created %s", volume.Name)
				}
			}
			s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), []byte(printed.output)), "create adopted volume")
			adopted := volumeOf(s, orphan)

			claim := s.CreateClaim("taker", "exeunt-adopted")
			named := s.CreateClaim("namer", "exeunt-adopted", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = adopted })
			s.AwaitVolume(adopted, "is released", harness.IsReleased)
			ordinary := s.CreateClaim("ordinary", harness.DeleteClass)
			s.AwaitBound(ordinary.Name)
			for _, waiting := range []string{claim.Name, named.Name} {
				s.AwaitClaim(waiting, "is pending", func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimPending })
			}
			s.AwaitVolume(adopted, "is released still", harness.IsReleased)
			if again := command(s, args...); again.status != 4 || !strings.Contains(again.errors, "a PersistentVolume has its handle") {
				t.Errorf("adopted again: exit code %d, %s", again.status, again.errors)
			}
			if count := s.CountCalls("DeleteVolume", orphan); count > 0 || !s.IsStored(orphan) {
				t.Errorf("%d calls of DeleteVolume with the policy Retain", count)
			}
			s.SetPolicy(adopted, v1.PersistentVolumeReclaimDelete)
			s.AwaitVolumeGone(adopted)
			if s.IsStored(orphan) || s.CountCalls("DeleteVolume", orphan) != 1 {
				t.Errorf("DeleteVolume was called %d times", s.CountCalls("DeleteVolume", orphan))
			}
			for _, done := range []string{claim.Name, named.Name, ordinary.Name} {
				s.DeleteClaim(done)
			}
		})
	}
}

// volumeOf returns the name of the PersistentVolume with the handle.
func volumeOf(s *harness.Session, handle string) string {
	s.T.Helper()
	volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list volumes")
	for _, volume := range volumes.Items {
		if volume.Spec.CSI != nil && volume.Spec.CSI.VolumeHandle == handle {
			return volume.Name
		}
	}
	s.T.Fatalf("no PersistentVolume has the handle %s", handle)
	return ""
}

func TestDoubtfulVolumeIsNotAdopted(t *testing.T) {
	shared := join(t)
	s := withDriver(shared, "")
	source := store(s, "source", "")
	clone := store(s, "clone", source)
	flags := []string{"--csi-address=" + s.Driver.Socket, "--kubeconfig=" + s.Plane.AdminKubeconfig, "--settle=0s"}
	done := command(s, append(flags, "--adopt", clone, source)...)
	if done.status != 4 || done.output != "" || !strings.Contains(done.errors, "it is doubtful, CloneSource: another volume was cloned from it") {
		t.Errorf("exit code %d, %s%s", done.status, done.errors, done.output)
	}
	s.CreateStorageClass(storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-secret"}, Provisioner: s.Driver.DriverName,
		Parameters: map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "credentials", "csi.storage.k8s.io/provisioner-secret-namespace": "storage"},
	})
	done = command(s, append(flags, "--adopt", clone, "--storage-class="+s.Namespace+"-secret")...)
	if done.status != 0 || !strings.Contains(done.output, "provisioner-deletion-secret-name: credentials") || strings.Contains(done.output, source) {
		t.Errorf("exit code %d, %s%s", done.status, done.errors, done.output)
	}
	done = command(s, append(flags, "--adopt", clone, "--storage-class="+harness.DeleteClass)...)
	if done.status != 1 || !strings.Contains(done.errors, "is of provisioner") {
		t.Errorf("class of another driver: exit code %d, %s", done.status, done.errors)
	}
}
