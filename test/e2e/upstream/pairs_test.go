package upstream

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestReclaimWithOurLoopsAndUpstreamSidecar(t *testing.T) {
	reclaimBesideUpstream(t, harness.Setup{UpstreamSidecar: true})
}

func TestReclaimWithUpstreamLoopsAndOurProvisioner(t *testing.T) {
	reclaimBesideUpstream(t, harness.Setup{UpstreamLoops: true})
}

// reclaimBesideUpstream deletes dynamic and static volumes in both orders. The number of
// DeleteVolume calls is not checked for upstream's sidecar.
func reclaimBesideUpstream(t *testing.T, how harness.Setup) {
	harness.Parallel(t, how)
	for _, static := range []bool{false, true} {
		for _, o := range []harness.DeletionOrder{harness.ClaimOnly, harness.VolumeThenClaim} {
			j := harness.ReclaimCase{Static: static, Policy: v1.PersistentVolumeReclaimDelete, Order: o}
			t.Run(j.String(), func(t *testing.T) {
				s := harness.Join(t, how)
				volume := s.BindAndDelete(j, true)
				if s.IsStored(harness.Handle(volume)) {
					t.Errorf("volume %s leaked: the storage system still has %s", volume.Name, harness.Handle(volume))
				}
				if calls := s.CountCalls("DeleteVolume", harness.Handle(volume)); calls != 1 && !how.UpstreamSidecar {
					t.Errorf("DeleteVolume was called %d times for %s, want once", calls, harness.Handle(volume))
				}
			})
		}
	}
}
