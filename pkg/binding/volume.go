package binding

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// VolumeState is what is known of one volume and its claim.
type VolumeState struct {
	Claim storage.ClaimRelation
	Phase storage.Phase
	// ModesDiffer: claim and volume have different volume modes.
	ModesDiffer bool
	// Disposable: provisioned for its claim, with policy Delete.
	Disposable bool
	// Doomed: the volume is being deleted, and the gate HonorPVReclaimPolicy is on.
	Doomed bool
	// Confirmed: the claim was read from the API server, not from a cache.
	Confirmed bool
}

// VolumeAction is the one thing to do next for a volume.
type VolumeAction int

const (
	// Leave changes nothing.
	Leave VolumeAction = iota
	// SetPhaseAvailable sets the phase Available.
	SetPhaseAvailable
	// SetPhaseBound sets the phase Bound.
	SetPhaseBound
	// ConfirmClaim reads the claim from the API server and decides again.
	ConfirmClaim
	// SetPhaseReleased sets the phase Released.
	SetPhaseReleased
	// ClearClaimRef takes back the reference to the claim: wholly if a controller
	// wrote it, else only its UID.
	ClearClaimRef
	// WakeClaim has the claim looked at, which finishes the binding.
	WakeClaim
	// ReportMismatch tells both objects' users that the volume modes differ.
	ReportMismatch
)

// String returns the name of the action.
func (a VolumeAction) String() string {
	return enum.Name(a, "Leave", "SetPhaseAvailable", "SetPhaseBound", "ConfirmClaim", "SetPhaseReleased", "ClearClaimRef", "WakeClaim", "ReportMismatch")
}

// VolumeDecision is an action and why it is taken.
type VolumeDecision struct {
	Action VolumeAction
	Reason VolumeReason
}

// VolumeReason says why.
type VolumeReason string

// The reasons of decisions on volumes.
const (
	// Unclaimed: the volume refers to no claim.
	Unclaimed VolumeReason = "Unclaimed"
	// ClaimGone: the claim that the volume refers to does not exist.
	ClaimGone VolumeReason = "ClaimGone"
	// ClaimUnread: the claim was not read.
	ClaimUnread VolumeReason = "ClaimUnread"
	// ClaimUnbound: the claim does not name the volume yet.
	ClaimUnbound VolumeReason = "ClaimUnbound"
	// NeverBoundVolume: the volume was deleted before its claim was bound to it.
	NeverBoundVolume VolumeReason = "VolumeDeletedBeforeBound"
	// ModesDiffer: claim and volume have different volume modes.
	ModesDiffer VolumeReason = "VolumeMismatch"
	// ClaimHere: the claim names the volume.
	ClaimHere VolumeReason = "Bound"
	// ClaimElsewhere: the claim names another volume.
	ClaimElsewhere VolumeReason = "ClaimElsewhere"
)

// DecideVolume returns the next step for one volume. A volume is released only
// after a live read of its claim: a cache that is stale, empty or wound back
// must never be believed when it says that a claim is gone.
func DecideVolume(s VolumeState) VolumeDecision {
	switch s.Claim {
	case storage.ClaimNone:
		return VolumeDecision{toPhase(s, storage.PhaseAvailable, SetPhaseAvailable), Unclaimed}
	case storage.ClaimGone:
		return VolumeDecision{release(s), ClaimGone}
	case storage.ClaimUnread:
		return VolumeDecision{confirmClaim(s), ClaimUnread}
	case storage.ClaimUnbound, storage.ClaimLost:
		return decideUnbound(s)
	case storage.ClaimBound:
		return VolumeDecision{toPhase(s, storage.PhaseBound, SetPhaseBound), ClaimHere}
	case storage.ClaimElsewhere:
	}
	return VolumeDecision{loser(s), ClaimElsewhere}
}

// decideUnbound waits for the claim to take the volume. A volume that is deleted
// before it says Bound can no longer be taken: if it was made for the claim it is
// reclaimed, and the claim gets another one. Both this and the binding change the
// phase from what was observed, so that only one of them can win.
func decideUnbound(s VolumeState) VolumeDecision {
	switch {
	case s.Doomed && s.Disposable && s.Phase != storage.PhaseBound:
		return VolumeDecision{release(s), NeverBoundVolume}
	case s.ModesDiffer:
		return VolumeDecision{ReportMismatch, ModesDiffer}
	}
	return VolumeDecision{WakeClaim, ClaimUnbound}
}

// loser reclaims or gives back a volume whose claim took another one.
func loser(s VolumeState) VolumeAction {
	switch {
	case s.Disposable:
		return release(s)
	case !s.Confirmed:
		return ConfirmClaim
	}
	return ClearClaimRef
}

func toPhase(s VolumeState, phase storage.Phase, action VolumeAction) VolumeAction {
	if s.Phase == phase {
		return Leave
	}
	return action
}

func release(s VolumeState) VolumeAction {
	switch {
	case s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed:
		return Leave
	case !s.Confirmed:
		return ConfirmClaim
	}
	return SetPhaseReleased
}

func confirmClaim(s VolumeState) VolumeAction {
	if s.Confirmed {
		return Leave
	}
	return ConfirmClaim
}
