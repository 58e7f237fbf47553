package reclaim

// Action is the one thing to do next; executing it twice does no harm.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Protect adds the finalizer.
	Protect
	// Unprotect removes the finalizer.
	Unprotect
	// Confirm reads the volume and its claim from the API server and decides again.
	Confirm
	// DeleteVolume deletes the volume in the storage system.
	DeleteVolume
	// DeleteObject deletes the PersistentVolume.
	DeleteObject
	// Fail sets the phase Failed.
	Fail
	// StartRecycler creates the pod that scrubs the volume.
	StartRecycler
	// RemoveRecycler deletes a recycler pod that is not to be believed, or that
	// nobody waits for any more.
	RemoveRecycler
	// FinishRecycling deletes the recycler pod and remembers its success.
	FinishRecycling
	// RetryRecycling sets the phase Failed and deletes the recycler pod.
	RetryRecycling
	// MakeAvailable takes the reference to the claim off, so that the volume can be
	// claimed again.
	MakeAvailable
	// MarkVolume writes the mark that asks the pv-controller to hold the volume.
	MarkVolume
	// CloseMark writes into the mark that the volume was deleted.
	CloseMark
	// DropMark takes the mark off.
	DropMark
)

// Decision is an action and why it is taken.
type Decision struct {
	Action Action
	Reason Reason
}

// Reason says why an action is taken. Its text serves as label of metrics and in logs.
type Reason string

// The reasons of this package.
const (
	// NotOurs: another component reclaims the volume.
	NotOurs Reason = "NotOurs"
	// PolicyKeepsData: the policy is Retain or Recycle.
	PolicyKeepsData Reason = "PolicyKeepsData"
	// PolicyMayDelete: a bound volume with policy Delete must not vanish before its data.
	PolicyMayDelete Reason = "PolicyMayDelete"
	// UnknownPolicy: the policy is none that this version knows.
	UnknownPolicy Reason = "VolumeUnknownReclaimPolicy"
	// GateOff: HonorPVReclaimPolicy is switched off.
	GateOff Reason = "GateOff"
	// StillClaimed: the volume is bound, or its claim exists.
	StillClaimed Reason = "StillClaimed"
	// NeverClaimed: no claim was ever bound to the volume.
	NeverClaimed Reason = "NeverClaimed"
	// StillAttached: the volume is attached to a node.
	StillAttached Reason = "StillAttached"
	// HandleShared: another PersistentVolume names the same volume handle.
	HandleShared Reason = "VolumeHandleShared"
	// TooLateToProtect: the volume was being deleted before its finalizer came.
	TooLateToProtect Reason = "TooLateToProtect"
	// ClaimReleased: the claim is gone, or bound to another volume.
	ClaimReleased Reason = "ClaimReleased"
	// AlreadyReclaimed: the volume was deleted in the storage system.
	AlreadyReclaimed Reason = "AlreadyReclaimed"
	// NoPlugin: no plugin can delete or recycle the volume.
	NoPlugin Reason = "NoPlugin"
	// GivenBack: the claim took another volume, and this one's data is not the claim's.
	GivenBack Reason = "GivenBack"
	// VolumeGoing: the volume is being deleted, so that nobody will claim it again.
	VolumeGoing Reason = "VolumeGoing"
	// VolumeUsed: a pod still uses the volume.
	VolumeUsed Reason = "VolumeUsed"
	// RecyclerBusy: the recycler pod has not finished, or is not gone yet.
	RecyclerBusy Reason = "RecyclerBusy"
	// RecyclerUnknown: a pod has the recycler's name and is not ours.
	RecyclerUnknown Reason = "RecyclerUnknown"
	// RecyclerDone: the recycler pod has succeeded.
	RecyclerDone Reason = "RecyclerDone"
	// RecyclerBroken: the recycler pod has failed.
	RecyclerBroken Reason = "RecyclerBroken"
	// RecyclerLeftOver: nobody waits for the recycler pod any more.
	RecyclerLeftOver Reason = "RecyclerLeftOver"
)
