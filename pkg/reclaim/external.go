package reclaim

import (
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// State is what the provisioner knows of one volume.
type State struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Owned: the volume belongs to the driver that this provisioner serves.
	Owned bool
	// Dynamic: the volume was provisioned for its claim.
	Dynamic bool
	// Policy and Phase are the volume's own.
	Policy storage.Policy
	Phase  storage.Phase
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: the volume carries the finalizer External.
	Protected bool
	// Claim is ClaimNone or ClaimUnread unless Confirmed.
	Claim storage.ClaimRelation
	// Attached: the driver publishes volumes, and a VolumeAttachment names this one.
	Attached bool
	// Shared: another PersistentVolume has the same driver and volume handle.
	Shared bool
	// Mark is the mark on a volume that was deleted before its finalizer came.
	Mark Mark
	// Deleted: the driver has reported success for DeleteVolume, for this UID.
	Deleted bool
	// Confirmed: volume and claim were read from the API server, not from a cache.
	Confirmed bool
}

// Decide returns the provisioner's next step for one volume.
func Decide(s State) Decision {
	switch {
	case !s.Owned:
		return Decision{Wait, NotOurs}
	case !s.Honor && s.Mark == MarkPending: // nobody would ever answer it
		return Decision{DropMark, GateOff}
	case !s.Honor && s.Protected:
		return Decision{Unprotect, GateOff}
	case !s.Honor && s.Deleting:
		return Decision{Wait, GateOff}
	case s.Policy == storage.PolicyUnknown:
		return Decision{Wait, UnknownPolicy}
	case s.Policy != storage.PolicyDelete && s.Protected:
		return Decision{Unprotect, PolicyKeepsData}
	case s.Policy != storage.PolicyDelete:
		return Decision{Wait, PolicyKeepsData}
	case s.Phase == storage.PhaseBound:
		return decideBound(s)
	case s.Phase == storage.PhaseReleased || s.Phase == storage.PhaseFailed:
		return decideReleased(s)
	}
	return decideUnclaimed(s)
}

func decideBound(s State) Decision {
	switch {
	case s.Protected || !s.Honor:
		return Decision{Wait, StillClaimed}
	case s.Deleting && s.Mark == NoMark:
		return Decision{MarkVolume, TooLateToProtect}
	case s.Deleting:
		return Decision{Wait, TooLateToProtect}
	}
	return Decision{Protect, PolicyMayDelete}
}

// decideUnclaimed keeps a volume that nobody claims from hanging in Terminating.
func decideUnclaimed(s State) Decision {
	if s.Deleting && s.Protected && s.Claim == storage.ClaimNone {
		return Decision{Unprotect, NeverClaimed}
	}
	return Decision{Wait, NeverClaimed}
}

func decideReleased(s State) Decision {
	switch {
	case s.Deleted && !s.Deleting:
		return Decision{DeleteObject, AlreadyReclaimed}
	case s.Deleted && s.Protected:
		return Decision{Unprotect, AlreadyReclaimed}
	case s.Deleted && s.Mark == MarkPending:
		return Decision{CloseMark, AlreadyReclaimed}
	case s.Deleted || s.Deleting && !s.Protected && s.Mark != MarkPending:
		return Decision{Wait, AlreadyReclaimed}
	case s.Shared:
		return Decision{Wait, HandleShared}
	case s.Attached:
		return Decision{Wait, StillAttached}
	case !s.Confirmed:
		return Decision{Confirm, ClaimReleased}
	case MayReclaim(s.Claim, s.Dynamic, s.Deleting):
		return Decision{DeleteVolume, ClaimReleased}
	}
	return Decision{Wait, StillClaimed}
}
