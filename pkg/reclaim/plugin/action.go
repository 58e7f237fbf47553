package plugin

import (
	"github.com/exeunt-io/exeunt/internal/enum"
)

// Action is the next step for one volume. Every action may be executed twice.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Confirm reads the volume, its claim and its recycler pod from the API server, and
	// calls Decide again.
	Confirm
	// DeleteVolume deletes the volume in the storage system.
	DeleteVolume
	// DeleteObject deletes the PersistentVolume.
	DeleteObject
	// RemoveFinalizer removes the finalizers InTree and External.
	RemoveFinalizer
	// SetPhaseFailed sets the phase Failed.
	SetPhaseFailed
	// CreateRecycler creates the recycler pod.
	CreateRecycler
	// DeleteRecycler deletes a recycler pod that is unneeded or was created for other data.
	DeleteRecycler
	// FinishRecycling deletes the recycler pod and remembers the pod's success.
	FinishRecycling
	// RetryRecycling sets the phase Failed and deletes the recycler pod.
	RetryRecycling
	// ReportForbidden sets the phase Failed: pv-controller has no right to recycle.
	ReportForbidden
	// ClearClaimRef removes the claimRef, so that another claim can use the volume.
	ClearClaimRef
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "Confirm", "DeleteVolume", "DeleteObject", "RemoveFinalizer", "SetPhaseFailed",
		"CreateRecycler", "DeleteRecycler", "FinishRecycling", "RetryRecycling", "ReportForbidden", "ClearClaimRef")
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// Reason is the reason of a decision, as in logs and events.
type Reason string

const (
	// ReclaimedByOther: the provisioner of a CSI driver reclaims the volume.
	ReclaimedByOther Reason = "ReclaimedByOther"
	// PolicyKeepsData: the policy is Retain.
	PolicyKeepsData Reason = "PolicyKeepsData"
	// UnknownPolicy: this version does not know the policy.
	UnknownPolicy Reason = "VolumeUnknownReclaimPolicy"
	// GateOff: the feature gate HonorPVReclaimPolicy is off.
	GateOff Reason = "GateOff"
	// StillClaimed: the claim may use the volume.
	StillClaimed Reason = "StillClaimed"
	// HandleShared: another PersistentVolume has the same path, or a path below or above.
	HandleShared Reason = "VolumeHandleShared"
	// ClaimReleased: the claim no longer uses the volume.
	ClaimReleased Reason = "ClaimReleased"
	// AlreadyReclaimed: the plugin deleted or recycled the volume.
	AlreadyReclaimed Reason = "AlreadyReclaimed"
	// NoPlugin: no plugin can delete or recycle the volume.
	NoPlugin Reason = "NoPlugin"
	// DataKept: the claim is bound to another volume and never wrote to this one.
	DataKept Reason = "DataKept"
	// VolumeDeleting: the volume is being deleted, so no claim can use the volume again.
	VolumeDeleting Reason = "VolumeDeleting"
	// VolumeUsed: a pod still uses the volume.
	VolumeUsed Reason = "VolumeUsed"
	// RecyclerPodUnfinished: the recycler pod runs, or is being deleted.
	RecyclerPodUnfinished Reason = "RecyclerPodUnfinished"
	// RecyclerPodForeign: a pod with the name of the recycler pod was created for other data.
	RecyclerPodForeign Reason = "RecyclerPodForeign"
	// RecyclerPodSucceeded: the recycler pod succeeded.
	RecyclerPodSucceeded Reason = "RecyclerPodSucceeded"
	// RecyclerPodFailed: the recycler pod failed.
	RecyclerPodFailed Reason = "RecyclerPodFailed"
	// RecyclerPodForbidden: the API server forbids to read the recycler pod.
	RecyclerPodForbidden Reason = "RecyclerPodForbidden"
	// RecyclerPodUnneeded: the volume no longer needs its recycler pod.
	RecyclerPodUnneeded Reason = "RecyclerPodUnneeded"
)

// StartsAttempt reports whether the action begins an attempt to delete or to recycle the
// volume. After a failure, the next attempt waits for a backoff.
func (a Action) StartsAttempt() bool {
	return a == Confirm || a == DeleteVolume || a == CreateRecycler
}

// NeedsRequeue reports whether a volume that waits for the reason waits for another object,
// and is requeued in case the event of that object is missed.
func (r Reason) NeedsRequeue() bool {
	return r == HandleShared || r == VolumeUsed || r == RecyclerPodUnfinished
}
