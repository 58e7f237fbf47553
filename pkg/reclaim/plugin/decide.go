package plugin

import (
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// State is what the pv-controller knows about one volume.
type State struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor     bool
	Reclaimer Reclaimer
	// CanRecycle: a plugin here can recycle the volume.
	CanRecycle bool
	Policy     storage.Policy
	Phase      storage.Phase
	// Dynamic: the volume was provisioned for its claim.
	Dynamic bool
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: the volume has a finalizer that is removed after the plugin's success.
	Protected bool
	Claim     storage.ClaimRelation
	// Shared: another volume has data at the same place or below it, or contains the data of
	// this volume and is not to be reclaimed ([State.AwaitsOthers]).
	Shared bool
	// Used: a pod that has not finished refers to the deleted claim.
	Used bool
	// Deleted: the plugin deleted the data of this claim.
	Deleted  bool
	Recycler Recycler
	// Recycled: a recycler pod removed the data of this claim.
	Recycled bool
	// Confirmed: volume, claim and recycler pod were read from the API server, not
	// from a cache.
	Confirmed bool
}

// Decide returns the next step for one volume. It is total and pure.
func Decide(s State) Decision {
	decision := decide(s)
	// A change of the policy to Retain, or of the claim, saves what the pod has not removed yet; a new
	// volume in the same directory keeps its data.
	harms := s.Policy != storage.PolicyRecycle || decision.Reason == HandleShared
	unneeded := s.Recycler.isFinished() || s.Recycler == RecyclerOutdated || s.Recycler == RecyclerRunning && harms
	if decision.Action == Wait && unneeded {
		return Decision{DeleteRecycler, RecyclerPodUnneeded}
	}
	return decision
}

// AwaitsOthers reports whether the volume is to be reclaimed, and waits only while other volumes
// share its data. No volume inside its directory waits for such a volume: they would wait for
// each other.
func (s State) AwaitsOthers() bool {
	s.Shared = true
	return decide(s).Reason == HandleShared
}

func decide(s State) Decision {
	switch {
	case s.Reclaimer == ReclaimerMigrated:
		return Decision{Wait, ReclaimedByOther}
	case !s.Phase.Released(), !s.mayReclaim():
		return Decision{Wait, StillClaimed}
	case s.Policy == storage.PolicyUnknown:
		return Decision{SetPhaseFailed, UnknownPolicy}
	case s.Policy == storage.PolicyRetain:
		return Decision{Wait, PolicyKeepsData}
	case s.Claim == storage.ClaimElsewhere && (!s.Dynamic || s.Policy != storage.PolicyDelete):
		return Decision{Wait, DataKept}
	case s.Policy == storage.PolicyRecycle:
		return decideRecycle(s)
	case s.Reclaimer == ReclaimerExternal:
		return Decision{Wait, ReclaimedByOther}
	}
	return decidePlugin(s)
}

// mayReclaim reports whether the claim allows that the volume is reclaimed. A volume that
// was never bound is never recycled.
func (s State) mayReclaim() bool {
	return reclaim.IsReleased(s.Claim) || s.Policy == storage.PolicyDelete &&
		reclaim.MayReclaim(s.Claim, s.Dynamic, s.Deleting)
}

func decidePlugin(s State) Decision {
	switch {
	case s.Deleted && !s.Deleting:
		return Decision{DeleteObject, AlreadyReclaimed}
	case s.Deleted && s.Protected:
		return Decision{RemoveFinalizer, AlreadyReclaimed}
	case s.Deleted:
		return Decision{Wait, AlreadyReclaimed}
	case !s.Honor && s.Deleting:
		return Decision{Wait, GateOff}
	case s.Reclaimer == ReclaimerMissing:
		return Decision{SetPhaseFailed, NoPlugin}
	case s.Shared:
		// Another volume has the same directory, or one inside it: kube-controller-manager removes the
		// directory with the first volume, and with it the data of the other one.
		return Decision{Wait, HandleShared}
	case !s.Confirmed:
		return Decision{Confirm, ClaimReleased}
	}
	return Decision{DeleteVolume, ClaimReleased}
}

// decideRecycle relies on a recycler pod only if it was read live: a claim must never see
// the data of another.
func decideRecycle(s State) Decision {
	switch {
	case s.Deleting:
		return Decision{Wait, VolumeDeleting}
	case !s.CanRecycle:
		return Decision{SetPhaseFailed, NoPlugin}
	case s.Recycled && s.Confirmed:
		return Decision{ClearClaimRef, AlreadyReclaimed}
	case s.Shared && !s.Recycled:
		return Decision{Wait, HandleShared}
	case s.Used && !s.Recycled:
		// The claim is gone, a pod of it still runs. What it writes after the recycler pod has ended, the
		// next claim would find on its volume.
		return Decision{Wait, VolumeUsed}
	case s.Recycler.isUnfinished() && !s.Recycled:
		return Decision{Wait, RecyclerPodUnfinished}
	case !s.Confirmed:
		return Decision{Confirm, ClaimReleased}
	}
	return decideRecycler(s.Recycler)
}

func decideRecycler(recycler Recycler) Decision {
	switch recycler {
	case RecyclerNone:
		return Decision{CreateRecycler, ClaimReleased}
	case RecyclerForeign, RecyclerOutdated:
		return Decision{DeleteRecycler, RecyclerPodForeign}
	case RecyclerSucceeded:
		return Decision{FinishRecycling, RecyclerPodSucceeded}
	case RecyclerFailed:
		return Decision{RetryRecycling, RecyclerPodFailed}
	case RecyclerForbidden:
		return Decision{ReportForbidden, RecyclerPodForbidden}
	case RecyclerDeleting, RecyclerRunning:
	}
	return Decision{Wait, RecyclerPodUnfinished}
}
