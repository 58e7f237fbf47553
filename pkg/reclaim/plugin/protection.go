package plugin

import (
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// ProtectionState is what decides whether a volume that is being deleted needs pv-protection.
type ProtectionState struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor     bool
	Reclaimer Reclaimer
	Policy    storage.Policy
	// Phase is the current phase, or the phase that is about to be written.
	Phase storage.Phase
	// InTree: the volume has the finalizer InTree.
	InTree bool
	// Status is the annotation of a volume that the provisioner reclaims.
	Status reclaim.Status
	Claim  storage.ClaimRelation
	// Dynamic: the volume was provisioned for its claim.
	Dynamic bool
	// Deleted: the plugin deleted the data of this claim.
	Deleted bool
}

// NeedsProtection reports whether pv-protection stays on a released volume that is being
// deleted: the volume is still to be reclaimed, and the finalizer of its reclaimer is
// missing. A volume whose claim exists is not reclaimed, so it needs no protection.
func NeedsProtection(s ProtectionState) bool {
	if !s.Honor || s.Policy != storage.PolicyDelete || !s.Phase.Released() || !reclaim.MayReclaim(s.Claim, s.Dynamic, true) {
		return false
	}
	switch s.Reclaimer {
	case ReclaimerPlugin:
		return !s.InTree && !s.Deleted
	case ReclaimerExternal, ReclaimerMigrated:
		return s.Status == reclaim.StatusPending
	case ReclaimerMissing:
	}
	return false
}
