package binding

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestOwnerOfVolumeWithoutClaimRef(t *testing.T) {
	claim := func(uid types.UID, phase v1.PersistentVolumeClaimPhase, age int64,
		change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(time.Unix(1000-age, 0)),
				Annotations: map[string]string{storage.AnnBindCompleted: "yes"}},
			Spec:   v1.PersistentVolumeClaimSpec{VolumeName: "v"},
			Status: v1.PersistentVolumeClaimStatus{Phase: phase},
		}
		for _, f := range change {
			f(c)
		}
		return c
	}
	incomplete := func(c *v1.PersistentVolumeClaim) { c.Annotations = nil }
	elsewhere := func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "w" }
	for name, tc := range map[string]struct {
		claims []*v1.PersistentVolumeClaim
		want   types.UID
	}{
		"no claim":                        {nil, ""},
		"bound claim":                     {[]*v1.PersistentVolumeClaim{claim("a", v1.ClaimBound, 1)}, "a"},
		"lost claim":                      {[]*v1.PersistentVolumeClaim{claim("a", v1.ClaimLost, 1)}, "a"},
		"claim that was never bound":      {[]*v1.PersistentVolumeClaim{claim("a", v1.ClaimPending, 1, incomplete)}, ""},
		"claim of another volume":         {[]*v1.PersistentVolumeClaim{claim("a", v1.ClaimBound, 1, elsewhere)}, ""},
		"older claim with the annotation": {[]*v1.PersistentVolumeClaim{claim("a", v1.ClaimPending, 9), claim("b", v1.ClaimBound, 1)}, "b"},
		"two bound claims":                {[]*v1.PersistentVolumeClaim{claim("a", v1.ClaimBound, 1), claim("b", v1.ClaimBound, 9)}, "b"},
		"two bound claims of equal age":   {[]*v1.PersistentVolumeClaim{claim("b", v1.ClaimBound, 1), claim("a", v1.ClaimBound, 1)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
			got := types.UID("")
			if owner := Owner(volume, tc.claims); owner != nil {
				got = owner.UID
			}
			if got != tc.want {
				t.Errorf("owner %q, want %q", got, tc.want)
			}
			volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "claim"}
			if owner := Owner(volume, tc.claims); owner != nil {
				t.Errorf("owner %q beside a claimRef", owner.UID)
			}
		})
	}
}

func TestVolumeWithOwnerIsNeverAvailable(t *testing.T) {
	for s := range volumeStates {
		available := DecideVolume(s).Action == SetPhaseAvailable
		if available && (s.Owned || s.Phase == storage.PhaseBound && !s.Confirmed) {
			t.Errorf("Available in %+v", s)
		}
	}
}
