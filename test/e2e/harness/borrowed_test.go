package harness

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLentClusterIsCleanedOrNotUsedAgain borrows a cluster three times: the first test
// leaves objects that are deleted, the second changes an object that is not its own.
func TestLentClusterIsCleanedOrNotUsedAgain(t *testing.T) {
	setup := Setup{NoPrograms: true}
	pool := poolOf(setup)
	pool.addUser() // keeps the clusters until all subtests have ended
	t.Cleanup(func() { pool.removeUser(t) })
	var dirs []string
	borrow := func(name string, use func(s *Session)) {
		t.Run("group "+name, func(t *testing.T) {
			t.Run(name, func(t *testing.T) {
				s := Borrow(t, setup)
				dirs = append(dirs, s.Dir)
				use(s)
			})
		})
	}
	borrow("leaves objects", func(s *Session) {
		s.CreateClaim("claim", DeleteClass,
			func(claim *v1.PersistentVolumeClaim) { claim.Finalizers = []string{"e2e.example.com/f"} })
		volume := s.CreateVolume("disk", v1.PersistentVolumeReclaimDelete)
		s.DeleteVolume(volume.Name)
	})
	borrow("changes a class", func(s *Session) {
		volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
		s.Must(err, "list volumes")
		claims, err := s.Client.CoreV1().PersistentVolumeClaims("").List(s.Ctx, metav1.ListOptions{})
		s.Must(err, "list claims")
		if len(volumes.Items)+len(claims.Items) > 0 {
			s.T.Errorf("volumes %v and claims %v are left", volumes.Items, claims.Items)
		}
		s.Must(s.Client.StorageV1().StorageClasses().Delete(s.Ctx, WaitClass, metav1.DeleteOptions{}), "delete class")
	})
	borrow("needs another", func(*Session) {})
	if len(slices.Compact(dirs)) != 2 {
		t.Errorf("the clusters were %v, want the first one twice, then another", dirs)
	}
}
