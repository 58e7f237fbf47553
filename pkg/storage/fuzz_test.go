package storage_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// relation returns the relation of the volume to the claim, condition by condition.
func relation(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) ClaimRelation {
	_, once := claim.Annotations[AnnBindCompleted]
	named := claim.Spec.VolumeName
	referred := volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID != ""
	is := map[ClaimRelation]bool{
		ClaimNone:      !referred,
		ClaimGone:      referred && volume.Spec.ClaimRef.UID != claim.UID,
		ClaimUnbound:   referred && volume.Spec.ClaimRef.UID == claim.UID && named == "" && !once,
		ClaimLost:      referred && volume.Spec.ClaimRef.UID == claim.UID && named == "" && once,
		ClaimBound:     referred && volume.Spec.ClaimRef.UID == claim.UID && named != "" && named == volume.Name,
		ClaimElsewhere: referred && volume.Spec.ClaimRef.UID == claim.UID && named != "" && named != volume.Name,
	}
	for relation, holds := range is {
		if holds {
			return relation
		}
	}
	return -1
}

// The relation of volume and claim equals a second computation, every accessor returns a
// known value, and nothing changes the objects.
func FuzzAccessors(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 70)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		claim, volume, class := d.Claim("p0"), d.Volume("v0"), d.Class("c0")
		claimBefore, volumeBefore := claim.DeepCopy(), volume.DeepCopy()
		if got, want := ClaimOf(volume, claim), relation(volume, claim); got != want {
			t.Errorf("ClaimOf = %v, want %v", got, want)
		}
		if got, unread := ClaimOf(volume, nil), UnreadClaim(volume); (got == ClaimNone) != (unread == ClaimNone) ||
			got != ClaimNone && got != ClaimGone {
			t.Errorf("ClaimOf without claim = %v, UnreadClaim = %v", got, unread)
		}
		phase, policy := PhaseOf(volume.Status.Phase), PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy)
		if policy != PolicyUnknown && policy.String() != string(volume.Spec.PersistentVolumeReclaimPolicy) ||
			phase != PhasePending && phase.String() != string(volume.Status.Phase) {
			t.Errorf("phase %q is %v, policy %q is %v", volume.Status.Phase, phase, volume.Spec.PersistentVolumeReclaimPolicy,
				policy)
		}
		if ClaimClass(claim) != "" && !ClassChosen(claim) || HasProvisioner(volume) && !IsDynamic(volume) ||
			NeverBound(claim) && claim.Spec.VolumeName != "" {
			t.Error("the accessors contradict each other")
		}
		for _, ref := range DataSourceRefs(claim) {
			source := DataSourceOf(ref)
			if ref.Namespace == nil || source.Namespace == "" ||
				!slices.Contains([]SourceKind{SourceClaim, SourceSnapshot, SourceOther}, source.Kind) {
				t.Errorf("data source of %v is %v", ref, source)
			}
		}
		if record := RecordOf(volume, claim.UID); record == RecordPresent && volume.Spec.ClaimRef.UID != claim.UID {
			t.Errorf("RecordOf = %v", record)
		}
		_, _ = ModeOf(claim.Spec.VolumeMode), WaitsForFirstConsumer(class)
		if diff := cmp.Diff(claimBefore, claim) + cmp.Diff(volumeBefore, volume); diff != "" {
			t.Errorf("changed the objects:\n%s", diff)
		}
	})
}
