package reclaim

import (
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Plugin is what is known of the in-tree plugin of a volume.
type Plugin int

const (
	// Migrated: the CSI driver that the plugin is migrated to does everything.
	Migrated Plugin = iota
	// External: a CSI driver or another provisioner deletes the volume; nobody
	// recycles it.
	External
	// Missing: the volume is an in-tree one, and no plugin here can delete it.
	Missing
	// Deletes: a plugin here can delete the volume.
	Deletes
)

// InTreeState is what the pv-controller knows of one volume whose claim may have
// let go of it.
type InTreeState struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Plugin is the plugin that deletes the volume; Recycles tells whether a
	// plugin here can scrub it.
	Plugin   Plugin
	Recycles bool
	// Policy and Phase are the volume's own.
	Policy storage.Policy
	Phase  storage.Phase
	// Dynamic: the volume was provisioned for its claim.
	Dynamic bool
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: a finalizer is left that is ours to take off once the plugin is done.
	Protected bool
	// Claim is the claim that the volume was bound to.
	Claim storage.ClaimRelation
	// Shared: another volume has its data at the same place, or below it.
	Shared bool
	// Used: a pod that has not finished refers to the claim that is gone.
	Used bool
	// Deleted: the plugin has reported success, for the data of this claim.
	Deleted bool
	// Recycler is the volume's recycler pod.
	Recycler Recycler
	// Recycled: the pod has succeeded, for the data of this claim.
	Recycled bool
	// Confirmed: volume, claim and recycler pod were read from the API server, not
	// from a cache.
	Confirmed bool
}

// DecideInTree returns the pv-controller's next step towards reclaiming one volume.
func DecideInTree(s InTreeState) Decision {
	decision := decideInTree(s)
	// Who turns the policy to Retain saves what a pod that runs has not removed yet.
	unwanted := s.Recycler.finished() || s.Recycler == RecyclerRuns && s.Policy != storage.PolicyRecycle
	if decision.Action == Wait && unwanted {
		return Decision{RemoveRecycler, RecyclerLeftOver}
	}
	return decision
}

func decideInTree(s InTreeState) Decision {
	switch {
	case s.Plugin == Migrated:
		return Decision{Wait, NotOurs}
	case s.Phase != storage.PhaseReleased && s.Phase != storage.PhaseFailed, !s.letGo():
		return Decision{Wait, StillClaimed}
	case s.Policy == storage.PolicyUnknown:
		return Decision{Fail, UnknownPolicy}
	case s.Policy == storage.PolicyRetain:
		return Decision{Wait, PolicyKeepsData}
	case s.Claim == storage.ClaimElsewhere && (!s.Dynamic || s.Policy != storage.PolicyDelete):
		return Decision{Wait, GivenBack}
	case s.Policy == storage.PolicyRecycle:
		return decideRecycle(s)
	case s.Plugin == External:
		return Decision{Wait, NotOurs}
	}
	return decidePlugin(s)
}

// letGo says whether the claim has let go of the volume: for good, or so that
// only a volume that is deleted anyway may go.
func (s InTreeState) letGo() bool {
	return IsReleased(s.Claim) || s.Policy == storage.PolicyDelete && MayReclaim(s.Claim, s.Dynamic, s.Deleting)
}

func decidePlugin(s InTreeState) Decision {
	switch {
	case s.Deleted && !s.Deleting:
		return Decision{DeleteObject, AlreadyReclaimed}
	case s.Deleted && s.Protected:
		return Decision{Unprotect, AlreadyReclaimed}
	case s.Deleted:
		return Decision{Wait, AlreadyReclaimed}
	case !s.Honor && s.Deleting:
		return Decision{Wait, GateOff}
	case s.Plugin == Missing:
		return Decision{Fail, NoPlugin}
	case s.Shared:
		return Decision{Wait, HandleShared}
	case !s.Confirmed:
		return Decision{Confirm, ClaimReleased}
	}
	return Decision{DeleteVolume, ClaimReleased}
}

// decideRecycle believes a recycler pod only if it was read live: no data of one
// claim may ever be seen by the next.
func decideRecycle(s InTreeState) Decision {
	switch {
	case s.Deleting:
		return Decision{Wait, VolumeGoing}
	case !s.Recycles:
		return Decision{Fail, NoPlugin}
	case s.Recycled && s.Confirmed:
		return Decision{MakeAvailable, AlreadyReclaimed}
	case s.Shared && !s.Recycled:
		return Decision{Wait, HandleShared}
	case s.Used && !s.Recycled:
		return Decision{Wait, VolumeUsed}
	case s.Recycler.busy() && !s.Recycled:
		return Decision{Wait, RecyclerBusy}
	case !s.Confirmed:
		return Decision{Confirm, ClaimReleased}
	}
	return decideRecycler(s.Recycler)
}

func decideRecycler(recycler Recycler) Decision {
	switch recycler {
	case NoRecycler:
		return Decision{StartRecycler, ClaimReleased}
	case ForeignRecycler:
		return Decision{RemoveRecycler, RecyclerUnknown}
	case RecyclerSucceeded:
		return Decision{FinishRecycling, RecyclerDone}
	case RecyclerFailed:
		return Decision{RetryRecycling, RecyclerBroken}
	case RecyclerGoing, RecyclerRuns:
	}
	return Decision{Wait, RecyclerBusy}
}
