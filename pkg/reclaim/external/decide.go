package external

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// State is what the provisioner knows about one volume.
type State struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Owned: the driver of this provisioner reclaims the volume.
	Owned bool
	// Dynamic: the volume was provisioned for its claim.
	Dynamic bool
	Policy  storage.Policy
	Phase   storage.Phase
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: the volume has the finalizer External.
	Protected bool
	// Claim is ClaimNone or ClaimUnread unless Confirmed.
	Claim storage.ClaimRelation
	// Attached: the driver publishes volumes, and a VolumeAttachment names the volume.
	Attached bool
	// Shared: another PersistentVolume has the same volume handle.
	Shared bool
	// Status is the annotation of a volume that was deleted before its finalizer was added.
	Status reclaim.Status
	// Deleted: DeleteVolume succeeded for the UID of the volume.
	Deleted bool
	// Confirmed: volume and claim were read from the API server, not from a cache.
	Confirmed bool
}

// Decide returns the next step for one volume. It is total and pure.
func Decide(s State) Decision {
	switch {
	case !s.Owned:
		return Decision{Wait, ReclaimedByOther}
	case !s.Honor && s.Status == reclaim.StatusPending: // the pv-controller would wait for ever
		return Decision{RemoveStatus, GateOff}
	case !s.Honor && s.Protected:
		return Decision{RemoveFinalizer, GateOff}
	case !s.Honor && s.Deleting:
		return Decision{Wait, GateOff}
	case s.Policy == storage.PolicyUnknown:
		// A policy of a later Kubernetes: nobody here knows whether it keeps the disk. So neither DeleteVolume
		// nor the removal of the finalizer, without which the object would go and leave the disk behind.
		return Decision{Wait, UnknownPolicy}
	case s.Policy != storage.PolicyDelete && s.Protected:
		return Decision{RemoveFinalizer, PolicyKeepsData}
	case s.Policy != storage.PolicyDelete:
		return Decision{Wait, PolicyKeepsData}
	case s.Phase == storage.PhaseBound:
		return decideBound(s)
	case s.Deleted:
		return decideReclaimed(s)
	case s.Phase.Released():
		return decideReleased(s)
	}
	return decideUnclaimed(s)
}

// IsUnprotected reports whether the volume lacks the finalizer that keeps it until the driver
// has deleted it: deleted before its claim, it may leave its data behind. The gate does not
// count.
func IsUnprotected(s State) bool {
	return s.Owned && s.Policy == storage.PolicyDelete && s.Phase == storage.PhaseBound && !s.Protected
}

func decideBound(s State) Decision {
	switch {
	case s.Protected || !s.Honor:
		return Decision{Wait, StillClaimed}
	case s.Deleting && s.Status == reclaim.StatusNone:
		// The API server refuses a new finalizer on an object that is being deleted. A volume deleted before an
		// upgrade, or right after its policy became Delete, would be gone with pv-protection, its disk left
		// behind. The annotation makes pv-controller keep pv-protection until the disk is deleted.
		return Decision{SetStatusPending, TooLateToProtect}
	case s.Deleting:
		return Decision{Wait, TooLateToProtect}
	}
	return Decision{AddFinalizer, PolicyMayDelete}
}

// decideUnclaimed ends the deletion of a volume that refers to no claim: there is nothing
// to reclaim.
func decideUnclaimed(s State) Decision {
	if s.Deleting && s.Protected && s.Claim == storage.ClaimNone {
		return Decision{RemoveFinalizer, NeverClaimed}
	}
	return Decision{Wait, NeverClaimed}
}

// decideReclaimed removes the object of a volume that was deleted in the storage system. A
// volume whose claimRef was cleared meanwhile must go before a claim is bound to it.
func decideReclaimed(s State) Decision {
	switch {
	case !s.Deleting:
		return Decision{DeleteObject, AlreadyReclaimed}
	case s.Protected:
		return Decision{RemoveFinalizer, AlreadyReclaimed}
	case s.Status == reclaim.StatusPending:
		return Decision{SetStatusDone, AlreadyReclaimed}
	}
	return Decision{Wait, AlreadyReclaimed}
}

func decideReleased(s State) Decision {
	switch {
	case s.Deleting && !s.Protected && s.Status != reclaim.StatusPending:
		return Decision{Wait, AlreadyReclaimed}
	case s.Shared:
		// Two objects name one disk, as after a static volume was made for the handle of another one: upstream
		// deletes the disk with the first object, and the claim of the other one loses its data.
		return Decision{Wait, HandleShared}
	case s.Attached:
		return Decision{Wait, StillAttached}
	case !s.Confirmed:
		// An administrator turns the policy to Retain after a failed deletion. The retry comes before the watch
		// shows it: csi-provisioner deletes by its cache, and the data is lost.
		return Decision{Confirm, ClaimReleased}
	case reclaim.MayReclaim(s.Claim, s.Dynamic, s.Deleting):
		return Decision{DeleteVolume, ClaimReleased}
	}
	return Decision{Wait, StillClaimed}
}

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
