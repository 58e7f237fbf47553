package external

import "github.com/exeunt-io/exeunt/internal/enum"

// Action is the next step for one volume. Every action may be executed twice.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Confirm reads the volume and its claim from the API server and decides again.
	Confirm
	// AddFinalizer adds the finalizer External.
	AddFinalizer
	// RemoveFinalizer removes the finalizer External.
	RemoveFinalizer
	// DeleteVolume deletes the volume in the storage system.
	DeleteVolume
	// DeleteObject deletes the PersistentVolume.
	DeleteObject
	// SetStatusPending asks the pv-controller to keep pv-protection: [reclaim.StatusPending].
	SetStatusPending
	// SetStatusDone tells the pv-controller that the volume was deleted: [reclaim.StatusDone].
	SetStatusDone
	// RemoveStatus removes the annotation exeunt.io/reclaim.
	RemoveStatus
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "Confirm", "AddFinalizer", "RemoveFinalizer", "DeleteVolume", "DeleteObject",
		"SetStatusPending", "SetStatusDone", "RemoveStatus")
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// Reason is the reason of a decision, as in logs and events.
type Reason string

const (
	// ReclaimedByOther: another component reclaims the volume.
	ReclaimedByOther Reason = "ReclaimedByOther"
	// PolicyKeepsData: the policy is Retain or Recycle.
	PolicyKeepsData Reason = "PolicyKeepsData"
	// PolicyMayDelete: a bound volume with policy Delete must outlive its data.
	PolicyMayDelete Reason = "PolicyMayDelete"
	// UnknownPolicy: this version does not know the policy.
	UnknownPolicy Reason = "VolumeUnknownReclaimPolicy"
	// GateOff: the gate HonorPVReclaimPolicy is off.
	GateOff Reason = "GateOff"
	// StillClaimed: the volume is bound, or its claim may use the volume.
	StillClaimed Reason = "StillClaimed"
	// NeverClaimed: no claim was ever bound to the volume.
	NeverClaimed Reason = "NeverClaimed"
	// StillAttached: the volume is attached to a node.
	StillAttached Reason = "StillAttached"
	// HandleShared: another PersistentVolume has the same volume handle.
	HandleShared Reason = "VolumeHandleShared"
	// TooLateToProtect: the volume was deleted before its finalizer was added.
	TooLateToProtect Reason = "TooLateToProtect"
	// ClaimReleased: the claim no longer uses the volume.
	ClaimReleased Reason = "ClaimReleased"
	// AlreadyReclaimed: the volume was deleted in the storage system.
	AlreadyReclaimed Reason = "AlreadyReclaimed"
)
