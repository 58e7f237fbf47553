package protection_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	. "github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// A claim that a pod uses is one of the pod's claims, a source is needed by a pending claim
// only, and the finalizer of a bound volume stays.
func FuzzUses(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 80)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		pod, claim, volume := d.Pod("pod"), d.Claim(fuzzobj.Pick(d, "p0", "p1", "pod-scratch")), d.Volume("v0")
		podBefore, claimBefore, volumeBefore := pod.DeepCopy(), claim.DeepCopy(), volume.DeepCopy()
		uses := Uses(pod, claim)
		if uses && (!slices.Contains(ClaimNames(pod), claim.Name) || pod.Spec.NodeName == "") {
			t.Errorf("pod on node %q with claims %q uses claim %s", pod.Spec.NodeName, ClaimNames(pod), claim.Name)
		}
		named := slices.ContainsFunc(pod.Spec.Volumes, func(volume v1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.Name
		})
		if named && pod.Spec.NodeName != "" && !uses {
			t.Errorf("scheduled pod that names claim %s does not use it", claim.Name)
		}
		action := DecideClaim(ClaimState{
			Deleting: claim.DeletionTimestamp != nil, Protected: finalizer.Has(claim.Finalizers, finalizer.ClaimProtection),
			Used: uses, Confirmed: true,
		})
		if action == UnprotectClaim && uses || action == ConfirmClaim || action < KeepClaim || action > UnprotectClaim {
			t.Errorf("action for a claim in use %v is %v", uses, action)
		}
		if source := NeededSource(claim); source.Kind != storage.SourceNone && claim.Status.Phase == v1.ClaimBound {
			t.Errorf("bound claim needs %v", source)
		}
		awaits := d.Below(2) == 1
		state := VolumeStateOf(volume, volume.Status.Phase, awaits)
		if decided := DecideVolume(state); decided < KeepVolume || decided > UnprotectVolume || decided == UnprotectVolume &&
			(volume.Status.Phase == v1.VolumeBound || awaits) {
			t.Errorf("volume of phase %q that awaits reclaim %v: %v", volume.Status.Phase, awaits, decided)
		}
		if diff := cmp.Diff(podBefore, pod) + cmp.Diff(claimBefore, claim) + cmp.Diff(volumeBefore, volume); diff != "" {
			t.Errorf("changed the objects:\n%s", diff)
		}
	})
}
