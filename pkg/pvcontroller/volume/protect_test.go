package volume

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// terminating returns a Released volume that is being deleted and whose only finalizer is
// pv-protection.
func terminating(change func(*v1.PersistentVolume)) *v1.PersistentVolume {
	return releasedVolume(v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		now := metav1.Now()
		v.DeletionTimestamp, v.Finalizers = &now, []string{string(finalizer.VolumeProtection)}
		change(v)
	})
}

func static(v *v1.PersistentVolume) { delete(v.Annotations, storage.AnnDynamicallyProvisioned) }

func pending(v *v1.PersistentVolume) {
	by("example.com")(v)
	v.Annotations[reclaim.Annotation] = reclaim.AnnotationPending
}

func unboundClaim() *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c"}}
}

// A volume whose claim exists is not reclaimed, so pv-protection would stay for ever. The
// claim is read from the API server, as the cache may be stale.
func TestProtectionIsRemovedWithoutReclaim(t *testing.T) {
	for name, tc := range map[string]struct {
		volume       *v1.PersistentVolume
		cached, live bool // the claim exists
		removed      bool
	}{
		"static, unbound claim":                     {terminating(static), true, true, true},
		"static, claim gone":                        {terminating(static), false, false, false},
		"static, claim gone but cached":             {terminating(static), true, false, false},
		"static, claim not cached":                  {terminating(static), false, true, false},
		"pending annotation, claim gone":            {terminating(pending), false, false, false},
		"pending annotation, claim gone but cached": {terminating(pending), true, false, false},
		"pending annotation, claim never bound":     {terminating(pending), true, true, false},
		"in-tree plugin, claim never bound":         {terminating(func(*v1.PersistentVolume) {}), true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, tc.volume)
			s.plugin.delete = nil // whoever calls it panics
			claim := unboundClaim()
			if tc.cached {
				s.must(s.Caches.Claims.GetStore().Add(claim))
			}
			if tc.live {
				_, err := s.Client.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), claim, metav1.CreateOptions{})
				s.must(err)
			}
			s.must(s.Reconcile(t.Context(), "v"))
			s.updateCaches()
			s.must(s.Protect(t.Context(), "v"))
			s.updateCaches()
			volume := s.Caches.Volume("v")
			if got := volume == nil || !slices.Contains(volume.Finalizers,
				string(finalizer.VolumeProtection)); got != tc.removed {
				t.Errorf("pv-protection is removed: %v, want %v", got, tc.removed)
			}
		})
	}
}
