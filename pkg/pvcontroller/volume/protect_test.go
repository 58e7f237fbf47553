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

// terminating is a Released volume that is being deleted and carries pv-protection
// only. Its static plugin could delete it, or its driver is asked to by the mark.
func terminating(change func(*v1.PersistentVolume)) *v1.PersistentVolume {
	return over(v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
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

// Nobody reclaims a volume whose claim exists, so that nobody would remove the
// protection. A cache that lags behind the end of the claim is not believed.
func TestProtectionGoesWhereNobodyReclaims(t *testing.T) {
	for name, tc := range map[string]struct {
		volume       *v1.PersistentVolume
		cached, live bool // the claim exists
		goes         bool
	}{
		"static, its claim is unbound":                        {terminating(static), true, true, true},
		"static, its claim is gone":                           {terminating(static), false, false, false},
		"static, its claim is gone and cached":                {terminating(static), true, false, false},
		"static, its claim is unknown to the cache":           {terminating(static), false, true, false},
		"marked, its claim is gone":                           {terminating(pending), false, false, false},
		"marked, its claim is gone and cached":                {terminating(pending), true, false, false},
		"marked, made for the claim that was never bound":     {terminating(pending), true, true, false},
		"provisioned for the claim that was never bound here": {terminating(func(*v1.PersistentVolume) {}), true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, tc.volume)
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
			s.follow()
			s.must(s.Protect(t.Context(), "v"))
			s.follow()
			volume := s.Caches.Volume("v")
			if got := volume == nil || !slices.Contains(volume.Finalizers, string(finalizer.VolumeProtection)); got != tc.goes {
				t.Errorf("the protection is gone: %v, want %v", got, tc.goes)
			}
		})
	}
}
