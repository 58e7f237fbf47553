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

func createdByPerson(v *v1.PersistentVolume) {
	v.Annotations = map[string]string{"example.com/any": "thing"}
}

// foundByController adds the annotation of a volume that a controller chose.
func foundByController(v *v1.PersistentVolume) { v.Annotations[storage.AnnBoundByController] = "yes" }

func unclaimed(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil }

func reserved(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }

// claimOfName returns the claim with the name that the volume refers to. The volume refers
// to the UID "c".
func claimOfName(uid types.UID, volume string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: uid, ResourceVersion: "1"},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

const deletes, retains = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain

var (
	phasePending, phaseAvailable, phaseBound = inPhase(v1.VolumePending), inPhase(v1.VolumeAvailable),
		inPhase(v1.VolumeBound)
	phaseReleased, phaseFailed = inPhase(v1.VolumeReleased), inPhase(v1.VolumeFailed)
)

var phaseCases = map[string]struct {
	volume *v1.PersistentVolume
	claim  *v1.PersistentVolumeClaim
	phase  v1.PersistentVolumePhase
	refers string // to "claim c", "claim" by name, or "" to none
}{
	"new, no claimRef":              {releasedVolume(retains, createdByPerson, phasePending, unclaimed), nil, v1.VolumeAvailable, ""},
	"new, no phase":                 {releasedVolume(retains, createdByPerson, inPhase(""), unclaimed), nil, v1.VolumeAvailable, ""},
	"new, reserved for name":        {releasedVolume(retains, createdByPerson, phasePending, reserved), nil, v1.VolumeAvailable, "claim"},
	"new, claim names volume":       {releasedVolume(deletes, phasePending), claimOfName("c", "v"), v1.VolumePending, "claim c"},
	"new, claim never existed":      {releasedVolume(retains, createdByPerson, phasePending), nil, v1.VolumeReleased, "claim c"},
	"new, claim names no volume":    {releasedVolume(deletes, phasePending), claimOfName("c", ""), v1.VolumePending, "claim c"},
	"available":                     {releasedVolume(retains, createdByPerson, phaseAvailable, unclaimed), nil, v1.VolumeAvailable, ""},
	"available, claim names volume": {releasedVolume(retains, createdByPerson, phaseAvailable), claimOfName("c", "v"), v1.VolumeAvailable, "claim c"},
	"available, claim gone":         {releasedVolume(retains, createdByPerson, phaseAvailable), nil, v1.VolumeReleased, "claim c"},
	"bound":                         {releasedVolume(deletes, phaseBound), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
	"bound, claim gone":             {releasedVolume(retains, phaseBound), nil, v1.VolumeReleased, "claim c"},
	"bound, new claim of same name": {releasedVolume(retains, phaseBound), claimOfName("d", "v"), v1.VolumeReleased, "claim c"},
	"bound, claimRef cleared": {
		releasedVolume(retains, createdByPerson, phaseBound, unclaimed), claimOfName("c", "v"), v1.VolumeAvailable, ""},
	"bound, claim names other, reserved by person": {
		releasedVolume(retains, createdByPerson, phaseBound), claimOfName("c", "other"), v1.VolumeAvailable, "claim"},
	"bound, claim names other, chosen by controller": {
		releasedVolume(retains, createdByPerson, phaseBound, foundByController), claimOfName("c", "other"),
		v1.VolumeAvailable, ""},
	"bound, provisioned, claim names other": {
		releasedVolume(deletes, phaseBound), claimOfName("c", "other"), v1.VolumeReleased, "claim c"},
	"bound, provisioned with Retain, claim names other": {
		releasedVolume(retains, phaseBound), claimOfName("c", "other"), v1.VolumeAvailable, "claim"},
	"bound, static with Delete, claim names other": {
		releasedVolume(deletes, createdByPerson, phaseBound), claimOfName("c", "other"), v1.VolumeAvailable, "claim"},
	"released":                   {releasedVolume(retains, phaseReleased), nil, v1.VolumeReleased, "claim c"},
	"released, claimRef cleared": {releasedVolume(retains, phaseReleased, unclaimed), nil, v1.VolumeAvailable, ""},
	"released, UID cleared":      {releasedVolume(retains, phaseReleased, reserved), nil, v1.VolumeAvailable, "claim"},
	"released, claim exists":     {releasedVolume(retains, phaseReleased), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
	"failed":                     {releasedVolume(retains, phaseFailed), nil, v1.VolumeFailed, "claim c"},
	"failed, claimRef cleared":   {releasedVolume(retains, phaseFailed, unclaimed), nil, v1.VolumeAvailable, ""},
	"failed, claim exists":       {releasedVolume(retains, phaseFailed), claimOfName("c", "v"), v1.VolumeBound, "claim c"},
}

// Each case is one transition: from the phase of the volume to the wanted phase.
func TestVolumePhases(t *testing.T) {
	for name, tc := range phaseCases {
		t.Run(name, func(t *testing.T) {
			volume := reconcileOnce(t, tc.volume, tc.claim).Caches.Volume("v")
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

// Two writers of one phase would refuse each other: the claim's reconciler binds the pair.
func TestClaimThatNamesNewVolumeIsWoken(t *testing.T) {
	for phase, want := range map[v1.PersistentVolumePhase][]string{
		v1.VolumePending: {"ns/claim"}, v1.VolumeAvailable: {"ns/claim"}, v1.VolumeBound: nil, v1.VolumeReleased: nil,
	} {
		t.Run(string(phase), func(t *testing.T) {
			claim := claimOfName("c", "v")
			s := newFixture(t, releasedVolume(retains, createdByPerson, inPhase(phase)), claim)
			s.must(s.Caches.Claims.GetStore().Add(claim))
			var woken []string
			s.WakeClaim = func(key string) { woken = append(woken, key) }
			s.must(s.Reconcile(t.Context(), "v"))
			if !slices.Equal(woken, want) {
				t.Errorf("woken: %q, want %q", woken, want)
			}
		})
	}
}

// reconcileOnce reconciles a volume once, with the claim of its name.
func reconcileOnce(t *testing.T, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) *fixture {
	t.Helper()
	objects := []runtime.Object{volume}
	if claim != nil {
		objects = append(objects, claim)
	}
	s := newFixture(t, objects...)
	if claim != nil {
		s.must(s.Caches.Claims.GetStore().Add(claim))
	}
	s.must(s.Reconcile(context.Background(), "v"))
	s.updateCaches()
	s.must(s.Protect(context.Background(), "v"))
	s.updateCaches()
	return s
}

func TestDifferentVolumeModesAreReportedOnBothObjects(t *testing.T) {
	block := v1.PersistentVolumeBlock
	claim := claimOfName("c", "")
	claim.Spec.VolumeMode = &block
	s := reconcileOnce(t, releasedVolume(v1.PersistentVolumeReclaimRetain, createdByPerson, inPhase(v1.VolumeAvailable)),
		claim)
	want := []string{`Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "claim" due to incompatible volumeMode`, `Warning VolumeMismatch: Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode`}
	if !slices.Equal(s.events.events, want) {
		t.Errorf("events %q, want %q", s.events.events, want)
	}
	if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeAvailable {
		t.Errorf("the volume is %s", phase)
	}
}

// revertPatches makes the API server return the unchanged volume for every patch.
func (s *fixture) revertPatches(volume *v1.PersistentVolume) *int {
	patches := new(int)
	s.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			*patches++
			return *patches < 1000, volume.DeepCopy(), nil
		})
	return patches
}

func TestReconcileEndsThoughWebhookRevertsPhase(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Spec.ClaimRef, v.Status.Phase = nil, v1.VolumePending })
	s := newFixture(t, volume)
	patches := s.revertPatches(volume)
	if err := s.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrTooManySteps) ||
		*patches > controller.MaxSteps {
		t.Errorf("%d patches in one reconcile, error %v", *patches, err)
	}
}
