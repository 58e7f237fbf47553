package binding

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// VolumeState is the state of one volume and its claim.
type VolumeState struct {
	Claim storage.ClaimRelation
	Phase storage.Phase
	// Owned: the volume has no claimRef, but a claim was bound to it ([Owner]).
	Owned bool
	// ModesDiffer: claim and volume have different volume modes.
	ModesDiffer bool
	// DynamicDelete: the volume was provisioned for its claim, with policy Delete.
	DynamicDelete bool
	// Deleting: the volume is being deleted, and the gate HonorPVReclaimPolicy is on.
	Deleting bool
	// Scrubbed: a recycler pod or a plugin that has not ended may remove data of the volume.
	Scrubbed bool
	// Confirmed: the claim was read from the API server, not from a cache. Without a claimRef all claims were.
	Confirmed bool
}

// VolumeAction is the next step for a volume.
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
	// ClearClaimRef removes the claimRef if a controller wrote it, otherwise only its UID.
	ClearClaimRef
	// WakeClaim enqueues the claim, whose reconciler finishes the binding.
	WakeClaim
	// ReportMismatch reports on both objects that the volume modes differ.
	ReportMismatch
)

// String returns the name of the action.
func (a VolumeAction) String() string {
	return enum.Name(a, "Leave", "SetPhaseAvailable", "SetPhaseBound", "ConfirmClaim", "SetPhaseReleased", "ClearClaimRef",
		"WakeClaim", "ReportMismatch")
}

// VolumeDecision is an action and its reason.
type VolumeDecision struct {
	Action VolumeAction
	Reason VolumeReason
}

// VolumeReason is the reason of a decision, as in logs and events.
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
	// RecyclerPodRuns: a recycler pod would remove the data of the next claim.
	RecyclerPodRuns VolumeReason = "RecyclerPodRuns"
)

// DecideVolume returns the next step for one volume. A volume gets no phase in which a claim can
// use it while a recycler pod scrubs it.
func DecideVolume(s VolumeState) VolumeDecision {
	decision := decideUsable(s)
	if s.Scrubbed && (decision.Action == SetPhaseAvailable || decision.Action == SetPhaseBound) {
		return VolumeDecision{Leave, RecyclerPodRuns}
	}
	return decision
}

// decideUsable is for a volume that no recycler pod scrubs. The phase Released needs a live read
// of the claim, because a stale or empty cache may lack a claim that exists.
func decideUsable(s VolumeState) VolumeDecision {
	switch s.Claim {
	case storage.ClaimNone:
		return decideUnclaimed(s)
	case storage.ClaimGone:
		return VolumeDecision{decideRelease(s), ClaimGone}
	case storage.ClaimUnread:
		return VolumeDecision{decideUnread(s), ClaimUnread}
	case storage.ClaimUnbound, storage.ClaimLost:
		return decideUnbound(s)
	case storage.ClaimBound:
		return VolumeDecision{decideBound(s), ClaimHere}
	case storage.ClaimElsewhere:
	}
	return VolumeDecision{decideElsewhere(s), ClaimElsewhere}
}

// decideUnclaimed makes a volume Available, but for one whose claimRef was removed while its claim was bound to it, as
// by kubectl replace: that claim sets the claimRef again. A stale cache may lack the claim.
func decideUnclaimed(s VolumeState) VolumeDecision {
	switch {
	case s.Owned:
		return VolumeDecision{WakeClaim, ClaimHere}
	case s.Phase == storage.PhaseBound && !s.Confirmed:
		return VolumeDecision{ConfirmClaim, Unclaimed}
	}
	return VolumeDecision{decidePhase(s, storage.PhaseAvailable, SetPhaseAvailable), Unclaimed}
}

// decideUnbound leaves the binding to the claim's reconciler, unless a dynamic volume is
// deleted before its phase is Bound: the volume is reclaimed, and the claim gets another one.
// Both writes test the observed phase, so that only one of them succeeds.
func decideUnbound(s VolumeState) VolumeDecision {
	switch {
	case s.Deleting && s.DynamicDelete && s.Phase != storage.PhaseBound:
		return VolumeDecision{decideRelease(s), NeverBoundVolume}
	case s.ModesDiffer:
		return VolumeDecision{ReportMismatch, ModesDiffer}
	}
	return VolumeDecision{WakeClaim, ClaimUnbound}
}

// decideElsewhere releases a dynamic volume whose claim is bound to another volume, and
// clears the claimRef of any other.
func decideElsewhere(s VolumeState) VolumeAction {
	switch {
	case s.DynamicDelete:
		return decideRelease(s)
	case !s.Confirmed:
		return ConfirmClaim
	}
	return ClearClaimRef
}

// decideBound leaves the phase of a new volume to the claim's reconciler: it sets the phase
// between two other writes, and one of two writers would be refused. A volume that was
// released is taken back at once, so that it is not reclaimed, and so is one that is being
// deleted: the volume of an in-tree plugin waits for its claim then.
func decideBound(s VolumeState) VolumeAction {
	isNew := s.Phase == storage.PhasePending || s.Phase == storage.PhaseAvailable
	if isNew && !s.Deleting {
		return WakeClaim
	}
	return decidePhase(s, storage.PhaseBound, SetPhaseBound)
}

func decidePhase(s VolumeState, phase storage.Phase, action VolumeAction) VolumeAction {
	if s.Phase == phase {
		return Leave
	}
	return action
}

func decideRelease(s VolumeState) VolumeAction {
	switch {
	case s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed:
		return Leave
	case !s.Confirmed:
		return ConfirmClaim
	}
	return SetPhaseReleased
}

func decideUnread(s VolumeState) VolumeAction {
	if s.Confirmed {
		return Leave
	}
	return ConfirmClaim
}
