package cli

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
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
			adopted := adopt(s, orphan)
			claims := expectUnbound(s, adopted)
			if again := runAudit(s, adoptFlags(s, orphan)...); again.status != 4 ||
				!strings.Contains(again.errors, "a PersistentVolume has its handle") {
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
			for _, claim := range claims {
				s.DeleteClaim(claim)
			}
		})
	}
}

func adoptFlags(s *harness.Session, handle string) []string {
	return []string{"--csi-address=" + s.Driver.Socket, "--kubeconfig=" + s.Plane.AdminKubeconfig, "--settle=0s",
		"--adopt=" + handle}
}

// adopt creates the PersistentVolume that --adopt prints, and returns its name.
func adopt(s *harness.Session, orphan string) string {
	s.T.Helper()
	printed := runAudit(s, adoptFlags(s, orphan)...)
	if printed.status != 0 {
		s.T.Fatalf("exit code %d: %s", printed.status, printed.errors)
	}
	if created := volumeOf(s, orphan); created != "" {
		s.T.Fatalf("--adopt created %s", created)
	}
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), []byte(printed.output)), "create adopted volume")
	return volumeOf(s, orphan)
}

// expectUnbound creates claims that could take the adopted volume, and returns their names:
// the volume stays Released and the claims stay Pending, while another claim is bound.
func expectUnbound(s *harness.Session, adopted string) []string {
	s.T.Helper()
	taker := s.CreateClaim("taker", "exeunt-adopted")
	namer := s.CreateClaim("namer", "exeunt-adopted", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = adopted })
	s.AwaitVolume(adopted, "is released", harness.IsReleased)
	ordinary := s.CreateClaim("ordinary", harness.DeleteClass)
	s.AwaitBound(ordinary.Name)
	for _, waiting := range []string{taker.Name, namer.Name} {
		s.AwaitClaim(waiting, "is pending",
			func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimPending })
	}
	s.AwaitVolume(adopted, "is released still", harness.IsReleased)
	return []string{taker.Name, namer.Name, ordinary.Name}
}

// volumeOf returns the name of the PersistentVolume with the handle, "" for none.
func volumeOf(s *harness.Session, handle string) string {
	s.T.Helper()
	volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list volumes")
	for _, volume := range volumes.Items {
		if volume.Spec.CSI != nil && volume.Spec.CSI.VolumeHandle == handle {
			return volume.Name
		}
	}
	return ""
}

func TestDoubtfulVolumeIsNotAdopted(t *testing.T) {
	shared := join(t)
	s := withDriver(shared, "")
	source := store(s, "source", "")
	clone := store(s, "clone", source)
	flags := []string{"--csi-address=" + s.Driver.Socket, "--kubeconfig=" + s.Plane.AdminKubeconfig, "--settle=0s"}
	done := runAudit(s, append(flags, "--adopt", clone, source)...)
	if done.status != 4 || done.output != "" || !strings.Contains(done.errors,
		"it is doubtful, CloneSource: another volume was cloned from it") {
		t.Errorf("exit code %d, %s%s", done.status, done.errors, done.output)
	}
	s.CreateStorageClass(storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-secret"}, Provisioner: s.Driver.DriverName,
		Parameters: map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "credentials",
			"csi.storage.k8s.io/provisioner-secret-namespace": "storage"},
	})
	done = runAudit(s, append(flags, "--adopt", clone, "--storage-class="+s.Namespace+"-secret")...)
	if done.status != 0 || !strings.Contains(done.output, "provisioner-deletion-secret-name: credentials") ||
		strings.Contains(done.output, source) {
		t.Errorf("exit code %d, %s%s", done.status, done.errors, done.output)
	}
	done = runAudit(s, append(flags, "--adopt", clone, "--storage-class="+harness.DeleteClass)...)
	if done.status != 1 || !strings.Contains(done.errors, "is of provisioner") {
		t.Errorf("class of another driver: exit code %d, %s", done.status, done.errors)
	}
}
