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

// TestVolumeChangedMeanwhileDoesNotBecomeBound: a user may have deleted the volume, and nothing
// could keep its data any more.
func TestVolumeChangedMeanwhileDoesNotBecomeBound(t *testing.T) {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "uid-1", ResourceVersion: "7"},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "shop", Name: "data", UID: "uid-2"}},
		Status:     v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	for phase, want := range map[v1.PersistentVolumePhase]bool{v1.VolumeBound: true, v1.VolumeReleased: false} {
		client := fake.NewClientset(volume)
		if _, err := pvwriter.New(client, controller.NewVersions()).SetPhase(t.Context(), volume, pvwriter.PhaseChange{Phase: phase}); err != nil {
			t.Fatal(err)
		}
		var body string
		for _, action := range client.Actions() {
			if patch, ok := action.(kubetesting.PatchAction); ok {
				body = string(patch.GetPatch())
			}
		}
		if tested := strings.Contains(body, `"/metadata/resourceVersion","value":"7"`); tested != want {
			t.Errorf("phase %s: the patch tests the version: %v, want %v: %s", phase, tested, want, body)
		}
	}
}
