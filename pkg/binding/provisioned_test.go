package binding_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
)

func TestOnlyAVolumeProvisionedForTheClaimWasMadeForIt(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid", CreationTimestamp: at(5)}}
	for name, tc := range map[string]struct {
		change func(*v1.PersistentVolume)
		want   bool
	}{
		"provisioned for it":              {func(*v1.PersistentVolume) {}, true},
		"made for another claim":          {func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "other" }, false},
		"free":                            {func(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil }, false},
		"written by hand":                 {func(v *v1.PersistentVolume) { v.Annotations = nil }, false},
		"chosen by the binder":            {func(v *v1.PersistentVolume) { v.Annotations[binding.BoundByController] = "yes" }, false},
		"reserved before there was a UID": {func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, false},
		"marked with it":                  {func(v *v1.PersistentVolume) { v.Annotations[binding.HoldsClaims] = "uid" }, true},
		"made for another claim, and given to this one by hand": {func(v *v1.PersistentVolume) { v.Annotations[binding.HoldsClaims] = "other" }, false},
		"older than the claim": {func(v *v1.PersistentVolume) { v.CreationTimestamp = at(4) }, false},
		"of the claim's name":  {func(v *v1.PersistentVolume) { v.Name, v.CreationTimestamp = "pvc-uid", at(4) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(5), Annotations: map[string]string{binding.ProvisionedBy: "driver"}},
				Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: "uid"}},
			}
			tc.change(volume)
			if got := binding.MadeFor(volume, claim); got != tc.want {
				t.Errorf("MadeFor = %v, want %v", got, tc.want)
			}
		})
	}
}
