package volume

import (
	"context"
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func inPhase(phase v1.PersistentVolumePhase) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Status.Phase = phase }
}

func byHand(v *v1.PersistentVolume) { v.Annotations = map[string]string{"example.com/any": "thing"} }

// foundByController is a volume that a controller found for its claim.
func foundByController(v *v1.PersistentVolume) { v.Annotations[storage.AnnBoundByController] = "yes" }

func unclaimed(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil }

func reserved(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }

// claimOfName is the claim that has the name the volume refers to; the volume knows
// the UID "c".
func claimOfName(uid types.UID, volume string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: uid, ResourceVersion: "1"},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

// A case is one transition: the phase before stands in the volume, what is to be
// expected is read from the API server after one look.
func TestEveryPhaseOfAVolumeIsReachedForItsReasonOnly(t *testing.T) {
	const deletes, retains = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain
	pending, available, bound := inPhase(v1.VolumePending), inPhase(v1.VolumeAvailable), inPhase(v1.VolumeBound)
	released, failed := inPhase(v1.VolumeReleased), inPhase(v1.VolumeFailed)
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		claim  *v1.PersistentVolumeClaim
		phase  v1.PersistentVolumePhase
		refers string // to "claim c", "claim" by name, or "" to none
	}{
		"new, and nobody claims it":            {over(retains, byHand, pending, unclaimed), nil, v1.VolumeAvailable, ""},
		"new, without phase":                   {over(retains, byHand, inPhase(""), unclaimed), nil, v1.VolumeAvailable, ""},
		"new, and reserved for a name":         {over(retains, byHand, pending, reserved), nil, v1.VolumeAvailable, "claim"},
		"new, and its claim names it":          {over(deletes, pending), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
		"new, and its claim never was":         {over(retains, byHand, pending), nil, v1.VolumeReleased, "claim c"},
		"new, and its claim names nothing yet": {over(deletes, pending), claimOfName("c", ""), v1.VolumePending, "claim c"},
		"available, and all is well":           {over(retains, byHand, available, unclaimed), nil, v1.VolumeAvailable, ""},
		"available, and its claim names it":    {over(retains, byHand, available), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
		"available, and its claim is gone":     {over(retains, byHand, available), nil, v1.VolumeReleased, "claim c"},
		"bound, and all is well":               {over(deletes, bound), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
		"bound, and its claim is gone":         {over(retains, bound), nil, v1.VolumeReleased, "claim c"},
		"bound, and another has the name":      {over(retains, bound), claimOfName("d", "v"), v1.VolumeReleased, "claim c"},
		"bound, and somebody took the reference": {
			over(retains, byHand, bound, unclaimed), claimOfName("c", "v"), v1.VolumeAvailable, ""},
		"bound, and its claim names another: given back to the name": {
			over(retains, byHand, bound), claimOfName("c", "other"), v1.VolumeAvailable, "claim"},
		"bound, and its claim names another: a controller's choice is taken back": {
			over(retains, byHand, bound, foundByController), claimOfName("c", "other"), v1.VolumeAvailable, ""},
		"bound, made for its claim, which names another": {
			over(deletes, bound), claimOfName("c", "other"), v1.VolumeReleased, "claim c"},
		"bound, made for its claim and kept, which names another": {
			over(retains, bound), claimOfName("c", "other"), v1.VolumeAvailable, "claim"},
		"released, and it stays so":           {over(retains, released), nil, v1.VolumeReleased, "claim c"},
		"released, and the reference cleared": {over(retains, released, unclaimed), nil, v1.VolumeAvailable, ""},
		"released, and the UID cleared":       {over(retains, released, reserved), nil, v1.VolumeAvailable, "claim"},
		"released, and its claim is there":    {over(retains, released), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
		"failed, and it stays so":             {over(retains, failed), nil, v1.VolumeFailed, "claim c"},
		"failed, and the reference cleared":   {over(retains, failed, unclaimed), nil, v1.VolumeAvailable, ""},
		"failed, and its claim is there":      {over(retains, failed), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := look(t, tc.volume, tc.claim).Caches.Volume("v")
			if volume.Status.Phase != tc.phase {
				t.Errorf("the volume is %s, want %s", volume.Status.Phase, tc.phase)
			}
			refers := ""
			if ref := volume.Spec.ClaimRef; ref != nil {
				refers = ref.Name
				if ref.UID != "" {
					refers += " " + string(ref.UID)
				}
			}
			if refers != tc.refers {
				t.Errorf("it refers to %q, want %q", refers, tc.refers)
			}
		})
	}
}

// look lets the controller look once at a volume and the claim of its name.
func look(t *testing.T, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) *stage {
	t.Helper()
	objects := []runtime.Object{volume}
	if claim != nil {
		objects = append(objects, claim)
	}
	s := newStage(t, objects...)
	if claim != nil {
		s.must(s.Caches.Claims.GetStore().Add(claim))
	}
	s.must(s.Reconcile(context.Background(), "v"))
	s.follow()
	s.must(s.Protect(context.Background(), "v"))
	s.follow()
	return s
}

func TestAVolumeOfAnotherModeIsToldToBothUsers(t *testing.T) {
	block := v1.PersistentVolumeBlock
	claim := claimOfName("c", "")
	claim.Spec.VolumeMode = &block
	s := look(t, over(v1.PersistentVolumeReclaimRetain, byHand, inPhase(v1.VolumeAvailable)), claim)
	want := []string{`Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "claim" due to incompatible volumeMode`, `Warning VolumeMismatch: Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode`}
	if !slices.Equal(s.events.events, want) {
		t.Errorf("told %q, want %q", s.events.events, want)
	}
	if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeAvailable {
		t.Errorf("the volume is %s", phase)
	}
}

// undo has the API server answer patches with the volume as it was.
func (s *stage) undo(volume *v1.PersistentVolume) *int {
	patches := new(int)
	s.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		*patches++
		return *patches < 1000, volume.DeepCopy(), nil
	})
	return patches
}

func TestPassEndsThoughWebhookUndoesPhase(t *testing.T) {
	volume := over(v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.ClaimRef, v.Status.Phase = nil, v1.VolumePending })
	s := newStage(t, volume)
	patches := s.undo(volume)
	if err := s.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrTooManySteps) || *patches > controller.MaxSteps {
		t.Errorf("%d patches in one pass, error %v", *patches, err)
	}
}
