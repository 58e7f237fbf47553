package pvwriter_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
)

// TestPhaseOfVolumeReservedByNameTestsVersion: a claim's UID may be written meanwhile.
func TestPhaseOfVolumeReservedByNameTestsVersion(t *testing.T) {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "uid-1", ResourceVersion: "7"},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "shop", Name: "data"}},
	}
	if !testsVersion(t, volume, v1.VolumeAvailable) {
		t.Error("the patch of the phase tests neither the claim nor the version")
	}
}

// TestDeletedVolumeGetsNoPhaseThatHasItReclaimed: a user may have deleted the volume
// meanwhile, and nothing could keep it any more until its data is gone.
func TestDeletedVolumeGetsNoPhaseThatHasItReclaimed(t *testing.T) {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "uid-1", ResourceVersion: "7"},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "shop", Name: "data", UID: "uid-2"}},
	}
	for change, want := range map[[2]v1.PersistentVolumePhase]bool{
		{v1.VolumeAvailable, v1.VolumeBound}: true, {v1.VolumeAvailable, v1.VolumeReleased}: true,
		{v1.VolumePending, v1.VolumeReleased}: true,
		{v1.VolumeBound, v1.VolumeReleased}:   false,
	} {
		phase := change[1]
		volume.Status.Phase = change[0]
		if tested := testsVersion(t, volume, phase); tested != want {
			t.Errorf("phases %s: the patch tests the version: %v, want %v", change, tested, want)
		}
	}
}

// testsVersion reports whether the write of the phase fails if the volume, of version 7, changed.
func testsVersion(t *testing.T, volume *v1.PersistentVolume, phase v1.PersistentVolumePhase) bool {
	t.Helper()
	client := fake.NewClientset(volume)
	if _, err := pvwriter.New(client, controller.NewVersions()).
		SetPhase(t.Context(), volume, pvwriter.PhaseChange{Phase: phase}); err != nil {
		t.Fatal(err)
	}
	var body string
	for _, action := range client.Actions() {
		if patch, ok := action.(kubetesting.PatchAction); ok {
			body = string(patch.GetPatch())
		}
	}
	return strings.Contains(body, `"/metadata/resourceVersion","value":"7"`)
}
