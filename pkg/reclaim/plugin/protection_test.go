package plugin_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	. "github.com/exeunt-io/exeunt/pkg/storage"
)

func TestNeedsProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		state ProtectionState
		want  bool
	}{
		"in-tree volume without finalizer": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerPlugin,
			Policy: PolicyDelete, Phase: PhaseReleased}, true},
		"in-tree volume after its deletion": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerPlugin,
			Policy: PolicyDelete, Phase: PhaseReleased, Deleted: true}, false},
		"in-tree volume with finalizer": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerPlugin,
			Policy: PolicyDelete, Phase: PhaseReleased, InTree: true}, false},
		"in-tree volume without plugin": {ProtectionState{Claim: ClaimGone, Honor: true,
			Reclaimer: ReclaimerMissing, Policy: PolicyDelete, Phase: PhaseReleased, Status: reclaim.StatusPending}, false},
		"Failed in-tree volume": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerPlugin,
			Policy: PolicyDelete, Phase: PhaseFailed}, true},
		"Available in-tree volume": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerPlugin,
			Policy: PolicyDelete, Phase: PhaseAvailable}, false},
		"in-tree volume with policy Retain": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerPlugin,
			Policy: PolicyRetain, Phase: PhaseReleased}, false},
		"in-tree volume with the gate off": {ProtectionState{Claim: ClaimGone, Reclaimer: ReclaimerPlugin, Policy: PolicyDelete, Phase: PhaseReleased}, false},
		"in-tree volume of an existing claim": {ProtectionState{Claim: ClaimBound, Honor: true,
			Reclaimer: ReclaimerPlugin, Policy: PolicyDelete, Phase: PhaseReleased}, false},
		"in-tree volume of an unbound claim": {ProtectionState{Claim: ClaimUnbound, Dynamic: true, Honor: true,
			Reclaimer: ReclaimerPlugin, Policy: PolicyDelete, Phase: PhaseReleased}, true},
		"static volume of an unbound claim": {ProtectionState{Claim: ClaimUnbound, Honor: true,
			Reclaimer: ReclaimerPlugin, Policy: PolicyDelete, Phase: PhaseReleased}, false},
		"pending CSI volume of an existing claim": {ProtectionState{Claim: ClaimBound, Honor: true,
			Reclaimer: ReclaimerExternal, Policy: PolicyDelete, Phase: PhaseReleased, Status: reclaim.StatusPending}, false},
		"CSI volume without status": {ProtectionState{Claim: ClaimGone, Honor: true,
			Reclaimer: ReclaimerExternal, Policy: PolicyDelete, Phase: PhaseReleased}, false},
		"pending CSI volume": {ProtectionState{Claim: ClaimGone, Honor: true,
			Reclaimer: ReclaimerExternal, Policy: PolicyDelete, Phase: PhaseReleased, Status: reclaim.StatusPending}, true},
		"pending migrated volume": {ProtectionState{Claim: ClaimGone, Honor: true,
			Reclaimer: ReclaimerMigrated, Policy: PolicyDelete, Phase: PhaseReleased, Status: reclaim.StatusPending}, true},
		"done CSI volume":                       {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerExternal, Policy: PolicyDelete, Phase: PhaseReleased, Status: reclaim.StatusDone}, false},
		"pending CSI volume with policy Retain": {ProtectionState{Claim: ClaimGone, Honor: true, Reclaimer: ReclaimerExternal, Policy: PolicyRetain, Phase: PhaseReleased, Status: reclaim.StatusPending}, false},
		"pending CSI volume with the gate off":  {ProtectionState{Claim: ClaimGone, Reclaimer: ReclaimerExternal, Policy: PolicyDelete, Phase: PhaseReleased, Status: reclaim.StatusPending}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NeedsProtection(tc.state); got != tc.want {
				t.Errorf("NeedsProtection(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// A protected volume is always reclaimed, fails visibly, or waits for another volume.
func TestProtectedVolumeIsReclaimed(t *testing.T) {
	for s := range states {
		if !s.Phase.Released() || !s.Deleting {
			continue
		}
		protected := NeedsProtection(ProtectionState{Claim: s.Claim, Dynamic: s.Dynamic, Honor: s.Honor,
			Reclaimer: s.Reclaimer, Policy: s.Policy, Phase: PhaseReleased, InTree: s.Protected, Deleted: s.Deleted})
		// A volume whose data is kept becomes Available, and loses its protection.
		if d := Decide(s); protected && d.Action == Wait && d.Reason != HandleShared && d.Reason != DataKept {
			t.Errorf("protected for ever: %+v, %v", s, d)
		}
	}
}
