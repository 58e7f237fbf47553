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
	large, b, a := reserved("0", "2Gi"), reserved("b", "1Gi"), reserved("a", "1Gi")
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
		"named claim without annotation is completed": {binding.ClaimState{Named: true, Volume: binding.BoundToClaim,
			VolumeBound: true, Confirmed: true}, binding.CompleteBinding},
		"bound claim whose volume was freed": {binding.ClaimState{Completed: true, Named: true, Volume: binding.Free,
			Deleting: true}, binding.BindFreeVolume},
		"volume reserved for an unbound claim": {binding.ClaimState{Volume: binding.Prebound}, binding.BindReservedVolume},
	} {
		t.Run(name, func(t *testing.T) {
			if got := binding.DecideClaim(tc.state).Action; got != tc.want {
				t.Errorf("DecideClaim(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

func TestCompletedClaimOfReservedVolumeIsMisbound(t *testing.T) {
	state := binding.ClaimState{Completed: true, Named: true, Volume: binding.Prebound, Status: binding.StatusBound,
		Confirmed: true}
	if got := binding.DecideClaim(state); got.Action != binding.SetStatusLost || got.Reason != binding.Misbound {
		t.Errorf("DecideClaim = %v, want %v for %v", got, binding.SetStatusLost, binding.Misbound)
	}
}

// claimAndVolume returns a claim and a volume that refers to it and fits.
func claimAndVolume() (*v1.PersistentVolumeClaim, *v1.PersistentVolume) {
	gigabyte := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	modes, mode, class := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, v1.PersistentVolumeFilesystem, "gold"
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c"},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeMode: &mode, VolumeAttributesClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: gigabyte},
		},
	}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: v1.PersistentVolumeSpec{
		AccessModes: modes, VolumeMode: &mode, VolumeAttributesClassName: &class, Capacity: gigabyte,
		ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim"},
	}}
	return claim, volume
}

func TestVolumeThatDoesNotFitIsNotTaken(t *testing.T) {
	block, silver := v1.PersistentVolumeBlock, "silver"
	for why, change := range map[string]func(*v1.PersistentVolume){
		"": func(*v1.PersistentVolume) {},
		"volumeAttributesClassName does not match": func(volume *v1.PersistentVolume) { volume.Spec.VolumeAttributesClassName = &silver },
		"incompatible volumeMode":                  func(volume *v1.PersistentVolume) { volume.Spec.VolumeMode = &block },
		"incompatible accessMode, the volume lacks one that the claim requests": func(volume *v1.PersistentVolume) {
			volume.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}
		},
		"requested PV is too small": func(volume *v1.PersistentVolume) {
			volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}
		},
	} {
		claim, volume := claimAndVolume()
		change(volume)
		if got := binding.Mismatch(volume, claim); got != why {
			t.Errorf("Mismatch = %q, want %q", got, why)
		}
		if taken := binding.ReservedVolume([]*v1.PersistentVolume{volume}, claim) != nil; taken != (why == "") {
			t.Errorf("a volume with the mismatch %q is taken: %v", why, taken)
		}
	}
}

func TestVolumeOfAnotherClaimIsRelatedToAnother(t *testing.T) {
	for name, ref := range map[string]v1.ObjectReference{
		"of another namespace": {Namespace: "other", Name: "claim", UID: "c"},
		"of another name":      {Namespace: "ns", Name: "other", UID: "c"},
		"of another UID":       {Namespace: "ns", Name: "claim", UID: "other"},
	} {
		claim, volume := claimAndVolume()
		volume.Spec.ClaimRef = &ref
		if got := binding.RelationOf(volume, claim); got != binding.BoundToOther {
			t.Errorf("RelationOf a volume of a claim %s = %v, want BoundToOther", name, got)
		}
	}
}

func TestStatusOfAnotherVolumeIsOther(t *testing.T) {
	modes, class := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, "gold"
	_, volume := claimAndVolume()
	for name, status := range map[string]v1.PersistentVolumeClaimStatus{
		"Pending with access modes":   {Phase: v1.ClaimPending, AccessModes: modes},
		"Pending with a capacity":     {Phase: v1.ClaimPending, Capacity: volume.Spec.Capacity},
		"Pending with a class":        {Phase: v1.ClaimPending, CurrentVolumeAttributesClassName: &class},
		"Lost with access modes":      {Phase: v1.ClaimLost, AccessModes: modes},
		"Bound with other modes":      {Phase: v1.ClaimBound, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}},
		"no phase":                    {},
		"no phase, and access modes":  {AccessModes: modes},
		"a phase that nobody knows":   {Phase: "Sleeping"},
		"the same, with access modes": {Phase: "Sleeping", AccessModes: modes},
	} {
		if got := binding.StatusOf(&v1.PersistentVolumeClaim{Status: status}, volume); got != binding.OtherStatus {
			t.Errorf("StatusOf a claim that is %s = %v, want OtherStatus", name, got)
		}
	}
}
