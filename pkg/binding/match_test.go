package binding_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
)

func TestSmallerThenFirstReservedVolumeIsTaken(t *testing.T) {
	reserved := func(name, size string) *v1.PersistentVolume {
		return &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1.PersistentVolumeSpec{
				Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)},
				ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim"},
			},
		}
	}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c"}}
	large, b, a := reserved("a-large", "2Gi"), reserved("b", "1Gi"), reserved("a", "1Gi")
	for _, volumes := range [][]*v1.PersistentVolume{{large, b, a}, {a, b, large}, {b, large, a}} {
		if got := binding.ReservedVolume(volumes, claim); got != a {
			t.Errorf("ReservedVolume = %v, want a", got.Name)
		}
	}
}

func TestMissingVolumeIsRelatedToNoClaim(t *testing.T) {
	if got := binding.RelationOf(nil, &v1.PersistentVolumeClaim{}); got != binding.Missing {
		t.Errorf("RelationOf(nil) = %v, want Missing", got)
	}
}

func TestOnlyBoundAndDeletedClaimsWaitForTheirOwnChange(t *testing.T) {
	for reason, want := range map[binding.Reason]bool{
		binding.IsBound: true, binding.ClaimDeleting: true, binding.VolumeMissing: false, binding.NothingFits: false,
	} {
		if got := reason.IsFinal(); got != want {
			t.Errorf("%s.IsFinal() = %v, want %v", reason, got, want)
		}
	}
}

func TestInterruptedBindingContinues(t *testing.T) {
	for name, tc := range map[string]struct {
		state binding.ClaimState
		want  binding.ClaimAction
	}{
		"named claim without annotation is completed": {binding.ClaimState{Named: true, Volume: binding.BoundToClaim, VolumeBound: true}, binding.CompleteBinding},
		"bound claim whose volume was freed":          {binding.ClaimState{Completed: true, Named: true, Volume: binding.Free, Deleting: true}, binding.BindFreeVolume},
		"volume reserved for an unbound claim":        {binding.ClaimState{Volume: binding.Prebound}, binding.BindReservedVolume},
	} {
		t.Run(name, func(t *testing.T) {
			if got := binding.DecideClaim(tc.state).Action; got != tc.want {
				t.Errorf("DecideClaim(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}
