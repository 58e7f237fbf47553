package cli

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestPlantedVolumesBesideRunningPrograms plants volumes with and without the name of a claim
// that is gone, beside provisioned volumes, a Pending claim of the driver, a Released volume and
// volumes of other drivers. The flags have their defaults.
func TestPlantedVolumesBesideRunningPrograms(t *testing.T) {
	s := harness.Own(t, harness.Setup{})
	for _, name := range []string{"first", "second"} {
		s.CreateClaim(name, harness.DeleteClass)
		s.AwaitBound(name)
	}
	s.CreateClaim("pending", "none", func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: s.Driver.DriverName}
	})
	planted := []string{store(s, "leaked", ""), store(s, "pvc-0a1b2c3d-0000-4000-8000-000000000001", "")}
	slices.Sort(planted)
	released := s.NewVolume("x", v1.PersistentVolumeReclaimRetain)
	released.Name, released.Spec.CSI.VolumeHandle = "released", store(s, "released", "")
	released.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: "gone",
		UID: "0a1b2c3d-0000-4000-8000-000000000002"}
	other := s.NewVolume("x", v1.PersistentVolumeReclaimRetain)
	other.Name, other.Spec.CSI.Driver, other.Spec.CSI.VolumeHandle = "other", "other.example.com", store(s, "other", "")
	disk := s.NewVolume("x", v1.PersistentVolumeReclaimRetain)
	disk.Name, disk.Spec.PersistentVolumeSource = "in-tree",
		v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{ShareName: "share", SecretName: "secret"}}
	for _, volume := range []*v1.PersistentVolume{released, other, disk} {
		_, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, volume, metav1.CreateOptions{})
		s.Must(err, "create PersistentVolume")
	}
	s.AwaitVolume(released.Name, "is released", harness.IsReleased)

	done := runAudit(s, "--csi-address="+s.Driver.Socket, "--kubeconfig="+s.Plane.AdminKubeconfig, "-o=json")
	found := decodeAudit(s, done)
	if !slices.Equal(found.orphans(), planted) || !found.Enumerated ||
		len(found.Doubtful)+len(found.Ghosts)+len(found.Shared)+len(found.Incomplete) > 0 {
		t.Errorf("planted %q, found %s", planted, done.output)
	}
	if strings.Contains(done.output, "null") {
		t.Errorf("an empty list is null: %s", done.output)
	}
	expectNoDeletion(s)
}
