package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// The state of any volume is known, and so is what the provisioner would do with the volume.
func FuzzState(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 80)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		volume, claim := d.Volume("v0"), d.Claim("p0")
		before := volume.DeepCopy()
		for _, relation := range []storage.ClaimRelation{storage.UnreadClaim(volume), storage.ClaimOf(volume, claim),
			storage.ClaimOf(volume, nil)} {
			state := stateOf(volume, relation)
			enumtest.ExpectKnown(t, state)
			enumtest.ExpectKnown(t, external.Decide(state))
			if state.Deleting != (volume.DeletionTimestamp != nil) || state.Claim != relation {
				t.Errorf("state %+v of a volume with deletion timestamp %v and claim %v", state, volume.DeletionTimestamp, relation)
			}
		}
		if diff := cmp.Diff(before, volume); diff != "" {
			t.Errorf("changed the volume:\n%s", diff)
		}
	})
}
