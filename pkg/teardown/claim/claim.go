package claim

import "github.com/exeunt-io/exeunt/internal/enum"

// Phase is the phase of the claim.
type Phase int

const (
	// Pending: no volume yet.
	Pending Phase = iota
	// Bound: it has a volume.
	Bound
	// Lost: its volume is gone.
	Lost
)

// String returns the name of the value.
func (p Phase) String() string { return enum.Name(p, "Pending", "Bound", "Lost") }

// Volume is what is known of the claim's volume.
type Volume int

const (
	// NoVolume: there is none, or it is not seen yet.
	NoVolume Volume = iota
	// Kept: it stays, and is marked.
	Kept
	// Unmarked: it stays, and is not marked yet.
	Unmarked
	// Deletable: it is to be deleted, by what the cache says.
	Deletable
	// Confirmed: it is to be deleted, by a live read of now.
	Confirmed
)

// String returns the name of the value.
func (v Volume) String() string {
	return enum.Name(v, "NoVolume", "Kept", "Unmarked", "Deletable", "Confirmed")
}

// Request is whether a volume was requested for a pending claim.
type Request int

const (
	// Unrequested: no provisioner was asked.
	Unrequested Request = iota
	// Open: a provisioner may be making a volume.
	Open
	// Failed: its last answer says that no volume was made.
	Failed
	// Unanswered: no final answer came for two minutes. A disk may exist, and nothing but its name pvc-UID shows it.
	Unanswered
)

// String returns the name of the value.
func (r Request) String() string { return enum.Name(r, "Unrequested", "Open", "Failed", "Unanswered") }

// State is what the decision about a claim rests on.
type State struct {
	// Deleting: the claim or its namespace has a deletionTimestamp.
	Deleting bool
	Phase    Phase
	Volume   Volume
	Request  Request
	// Preserved: the label is on the claim or its namespace.
	Preserved bool
	// Ephemeral: a pod owns it, and it goes with the pod.
	Ephemeral bool
	// Open: the wave of the claim has begun.
	Open bool
	// Used: a pod that uses the claim is there.
	Used bool
}

// Action is what happens to a claim or a pod.
type Action int

const (
	// Leave does nothing, and nothing is awaited.
	Leave Action = iota
	// Wait does nothing yet.
	Wait
	// Confirm reads the volume live.
	Confirm
	// Delete deletes the object.
	Delete
)

// String returns the name of the value.
func (a Action) String() string { return enum.Name(a, "Leave", "Wait", "Confirm", "Delete") }

// Reason is the reason of a decision.
type Reason string

const (
	// Terminating: the claim is deleted already.
	Terminating Reason = "Terminating"
	// VolumeKept: its volume stays, and so does the claim.
	VolumeKept Reason = "VolumeKept"
	// Preserved: a pending claim with the label.
	Preserved Reason = "Preserved"
	// KeepingVolume: a kept volume is not marked yet.
	KeepingVolume Reason = "KeepingVolume"
	// VolumeUnseen: the claim is bound, and its volume is not seen.
	VolumeUnseen Reason = "VolumeUnseen"
	// LostClaim: its volume is gone.
	LostClaim Reason = "LostClaim"
	// GoesWithPod: its pod owns it.
	GoesWithPod Reason = "GoesWithPod"
	// WaveClosed: what goes before is not gone yet.
	WaveClosed Reason = "WaveClosed"
	// PodsUseIt: its pods go first.
	PodsUseIt Reason = "PodsUseIt"
	// ClaimUnrequested: no volume was requested for it.
	ClaimUnrequested Reason = "Unrequested"
	// ProvisioningRequested: a volume is being made.
	ProvisioningRequested Reason = "ProvisioningRequested"
	// ProvisioningFailed: no volume was made.
	ProvisioningFailed Reason = "ProvisioningFailed"
	// OutcomeUnknown: whether a volume was made is unknown.
	OutcomeUnknown Reason = "OutcomeUnknown"
	// VolumeDeletable: its volume is to be deleted.
	VolumeDeletable Reason = "VolumeDeletable"
	// PodTerminating: the pod is deleted already.
	PodTerminating Reason = "PodTerminating"
	// MirrorPod: the kubelet runs it from a file.
	MirrorPod Reason = "MirrorPod"
	// UsesClaims: the pod uses claims.
	UsesClaims Reason = "UsesClaims"
)

// Decision is an action with its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// Decide returns what happens to a claim. It is total and pure. A claim whose volume was not read live is not deleted.
func Decide(s State) Decision {
	switch {
	case s.Deleting:
		return Decision{Wait, Terminating}
	case s.Volume == Kept:
		return Decision{Leave, VolumeKept}
	case s.Volume == Unmarked:
		return Decision{Wait, KeepingVolume}
	case s.Phase == Lost:
		return Decision{Leave, LostClaim}
	case s.Preserved: // also a bound claim whose volume is not seen: the volume would have its label
		return decidePreserved(s)
	case s.Ephemeral:
		return Decision{Wait, GoesWithPod}
	case !s.Open:
		return Decision{Wait, WaveClosed}
	case s.Used:
		return Decision{Wait, PodsUseIt}
	case s.Phase == Bound:
		return decideBound(s)
	}
	return decidePending(s)
}

// decidePreserved awaits the volume of a requested claim: a volume that is made after the end would be named nowhere.
func decidePreserved(s State) Decision {
	switch {
	case s.Phase == Pending && s.Request == Open:
		return Decision{Wait, ProvisioningRequested}
	case s.Phase == Pending && s.Request == Unanswered:
		return Decision{Leave, OutcomeUnknown}
	}
	return Decision{Leave, Preserved}
}

// decideBound deletes a claim only by a live read of its volume: a user may have set the policy Retain since.
func decideBound(s State) Decision {
	switch s.Volume {
	case Deletable:
		return Decision{Confirm, VolumeDeletable}
	case Confirmed:
		return Decision{Delete, VolumeDeletable}
	default:
		return Decision{Wait, VolumeUnseen}
	}
}

// decidePending waits for the answer of a provisioner: a claim that is deleted during CreateVolume leaves a disk that no
// PersistentVolume names.
func decidePending(s State) Decision {
	switch {
	case s.Volume != NoVolume: // a volume is there, and is being bound
		return Decision{Wait, ProvisioningRequested}
	case s.Request == Unrequested:
		return Decision{Delete, ClaimUnrequested}
	case s.Request == Failed:
		return Decision{Delete, ProvisioningFailed}
	case s.Request == Unanswered:
		return Decision{Delete, OutcomeUnknown}
	}
	return Decision{Wait, ProvisioningRequested}
}
