package volume

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Stage is what the deletion of a PersistentVolume waits for first.
type Stage int

const (
	// Kept: no deletion was requested, and the policy keeps the volume.
	Kept Stage = iota
	// Claimed: the claim of the volume exists.
	Claimed
	// ClaimUnseen: the volume is bound, and its claim could not be read.
	ClaimUnseen
	// ToRelease: the claim is gone, and the phase does not say so yet.
	ToRelease
	// ToReclaim: the driver or the plugin has to delete the disk.
	ToReclaim
	// Unclaimed: the volume names no claim, so nothing is reclaimed although the policy is Delete;
	// finalizers have to be removed.
	Unclaimed
	// ToUnprotect: nothing has to be deleted, finalizers have to be removed.
	ToUnprotect
)

// String returns the name of the value.
func (s Stage) String() string {
	return enum.Name(s, "kept", "claimed", "claimUnseen", "toRelease", "toReclaim", "unclaimed", "toUnprotect")
}

// State is the observed state of a PersistentVolume.
type State struct {
	Policy storage.Policy
	Phase  storage.Phase
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Claim is the relation to the claim; ClaimUnread if the claim could not be read.
	Claim storage.ClaimRelation
	// Marked: a finalizer, or the annotation exeunt.io/reclaim, keeps the volume until its
	// disk is deleted.
	Marked bool
}

// StageOf returns what the deletion waits for first.
func StageOf(s State) Stage {
	reclaims := s.Phase.Released() && s.Policy == storage.PolicyDelete
	if !s.Deleting && !reclaims {
		return Kept
	}
	if stage, keeps := s.claimStage(); keeps {
		return stage
	}
	switch {
	case s.Phase == storage.PhaseBound:
		return ToRelease
	case reclaims && (s.Marked || !s.Deleting):
		return ToReclaim
	case s.isUnclaimed():
		return Unclaimed
	}
	return ToUnprotect
}

// isUnclaimed reports whether the volume would be reclaimed once it is Released, which needs a claim.
func (s State) isUnclaimed() bool {
	return s.Policy == storage.PolicyDelete && s.Claim == storage.ClaimNone && !s.Phase.Released()
}

// claimStage returns the stage of a volume whose claim may use it, and false without one.
func (s State) claimStage() (Stage, bool) {
	switch {
	case s.Claim == storage.ClaimBound:
		return Claimed, true
	case s.Phase.Released():
		return Kept, false
	case s.Claim == storage.ClaimUnbound:
		return Claimed, true
	}
	return ClaimUnseen, s.Claim == storage.ClaimUnread
}
