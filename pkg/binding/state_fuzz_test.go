package binding_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// Relation, status and plugin volume of any claim and volume are known values. The status
// that is written for a claim is the status that is read afterwards.
func FuzzState(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 80)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		claim, volume := d.Claim("p0"),
			d.Volume(fuzzobj.Pick(d, "v0", ProvisionedName(&v1.PersistentVolumeClaim{}), "pvc-p0"))
		claimBefore, volumeBefore := claim.DeepCopy(), volume.DeepCopy()
		relation, status := RelationOf(volume, claim), StatusOf(claim, volume)
		if relation < Free || relation > BoundToOther || relation == Mismatched || status < OtherStatus ||
			status > StatusLost {
			t.Errorf("relation %v, status %v", relation, status)
		}
		if relation == BoundToClaim && volume.Spec.ClaimRef.UID != claim.UID {
			t.Errorf("volume of claim %q is bound to claim %q", volume.Spec.ClaimRef.UID, claim.UID)
		}
		plugin := PluginVolumeOf(volume, claim, d.Below(2) == 1)
		if plugin == NotRecorded || plugin == Unfinished && !IsUnfinished(volume, claim) || plugin != NameConflict &&
			relation != BoundToClaim {
			t.Errorf("plugin volume %v of relation %v", plugin, relation)
		}
		for phase, want := range map[v1.PersistentVolumeClaimPhase]Status{v1.ClaimPending: StatusPending,
			v1.ClaimLost: StatusLost} {
			written := claim.DeepCopy()
			written.Status = *StatusWithoutVolume(claim, phase)
			if got := StatusOf(written, volume); got != want {
				t.Errorf("status %v after %s was written", got, phase)
			}
		}
		if bound := BoundStatus(claim, volume); bound != nil {
			written := claim.DeepCopy()
			written.Status = *bound
			if got := StatusOf(written, volume); got != StatusBound {
				t.Errorf("status %v after Bound was written: %v", got, bound)
			}
		}
		if reserved := ReservedVolume([]*v1.PersistentVolume{volume}, claim); reserved != nil && relation != Prebound &&
			relation != BoundToClaim {
			t.Errorf("volume of relation %v is reserved", relation)
		}
		if diff := cmp.Diff(claimBefore, claim) + cmp.Diff(volumeBefore, volume); diff != "" {
			t.Errorf("changed the objects:\n%s", diff)
		}
	})
}
