package reclaim

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

// InTreeState is what the pv-controller knows of one volume that is Released or
// Failed, or whose claim has let go of it.
type InTreeState struct {
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// Plugin is the plugin of the volume.
	Plugin Plugin
	// Policy is the volume's own.
	Policy Policy
	// Deleting: the volume has a deletion timestamp.
	Deleting bool
	// Protected: the volume carries the finalizer InTree.
	Protected bool
	// Claim is the claim that the volume was bound to.
	Claim Claim
	// Deleted: the plugin has reported success, for this UID.
	Deleted bool
	// Confirmed: volume and claim were read from the API server, not from a cache.
	Confirmed bool
}

// DecideInTree returns the pv-controller's next step towards reclaiming one volume.
func DecideInTree(s InTreeState) Decision {
	switch {
	case s.Plugin == Migrated:
		return Decision{Wait, NotOurs}
	case !s.Claim.Released() && !(s.Policy == Delete && s.Claim.LetsGo(s.Deleting)):
		return Decision{Wait, StillClaimed}
	case s.Policy == OtherPolicy:
		return Decision{Fail, UnknownPolicy}
	case s.Policy == Retain:
		return Decision{Wait, PolicyKeepsData}
	case s.Policy == Delete && s.Plugin == External:
		return Decision{Wait, NotOurs}
	case s.Policy == Recycle && s.Plugin != Deletes:
		return Decision{Fail, NoPlugin}
	case s.Policy == Recycle:
		return confirmed(s, RecycleVolume)
	}
	return decidePlugin(s)
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
	}
	return confirmed(s, DeleteVolume)
}

// confirmed returns the action only for a state that was read live.
func confirmed(s InTreeState, action Action) Decision {
	if !s.Confirmed {
		return Decision{Confirm, ClaimReleased}
	}
	return Decision{action, ClaimReleased}
}
