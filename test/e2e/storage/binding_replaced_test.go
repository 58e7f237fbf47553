package storage

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// A tool replaces a Bound volume by its manifest, which has no claimRef, while another claim waits for such a volume.
// Upstream gives the volume to whichever claim it reconciles first.
func TestReplacedVolumeGoesToItsOwnClaim(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.CreateVolume("disk", v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("owner", s.Namespace)
	name := s.AwaitBound("owner").Name
	s.CreateClaim("waiting", s.Namespace)
	s.AwaitEvent(s.NewClaim("waiting", s.Namespace), "ProvisioningFailed") // there is no such class
	for range 3 {                                                          // what is undone more often is repeated with pauses
		volume, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, name, metav1.GetOptions{})
		s.Must(err, "read volume")
		volume.Spec.ClaimRef, volume.ResourceVersion = nil, ""
		_, err = s.Client.CoreV1().PersistentVolumes().Update(s.Ctx, volume, metav1.UpdateOptions{})
		s.Must(err, "replace volume")
		volume = s.AwaitVolume(name, "has a claimRef", func(v *v1.PersistentVolume) bool { return v.Spec.ClaimRef != nil })
		if volume.Spec.ClaimRef.Name != "owner" {
			t.Fatalf("the volume was given to claim %s", volume.Spec.ClaimRef.Name)
		}
	}
	s.AwaitClaim("owner", "is bound", func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
	s.AwaitVolume(name, "is bound", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeBound })
}
