package fate

import "github.com/exeunt-io/exeunt/internal/enum"

// Claim is the relation of the volume to its claim.
type Claim int

const (
	// Never: no claim was bound to it.
	Never Claim = iota
	// Lost: its claim is Lost, or is bound to another volume.
	Lost
	// Released: its claim is gone. The phase is Released or Failed, or the claim was read as gone.
	Released
	// Bound: its claim is there.
	Bound
)

// String returns the name of the value.
func (c Claim) String() string { return enum.Name(c, "Never", "Lost", "Released", "Bound") }

// State is what the decision about a volume rests on.
type State struct {
	// Preserved: the label is on the volume, its claim, or the namespace of the claim.
	Preserved bool
	// Deletable: the policy is Delete. Retain, Recycle and values that we do not know are not.
	Deletable bool
	// Provisioned: the annotation pv.kubernetes.io/provisioned-by names who made it.
	Provisioned bool
	// Shared: another PersistentVolume has the same handle, here or in another cluster.
	Shared bool
	// Below: a kept volume or snapshot is served from the namespace of its claim.
	Below bool
	// Claim is its relation to the claim.
	Claim Claim
	// Marked: the volume itself has the label, and the policy Retain.
	Marked bool
	// Held: its provisioner's finalizer is there, so that its end shows the end of the disk.
	Held bool
}

// Action is what happens to the volume.
type Action int

const (
	// Keep leaves disk, volume and claim.
	Keep Action = iota
	// Mark is Keep for a volume that is not marked yet.
	Mark
	// Await waits until the volume is gone.
	Await
	// DeleteClaim lets the claim be deleted.
	DeleteClaim
)

// String returns the name of the value.
func (a Action) String() string { return enum.Name(a, "Keep", "Mark", "Await", "DeleteClaim") }

// Reason is the reason of a decision.
type Reason string

const (
	// Preserved: the label says so.
	Preserved Reason = "Preserved"
	// PolicyRetain: the policy is not Delete.
	PolicyRetain Reason = "PolicyRetain"
	// Static: an administrator made the volume.
	Static Reason = "Static"
	// HandleShared: another PersistentVolume stands for the same disk.
	HandleShared Reason = "HandleShared"
	// HoldsKeptVolumes: a kept volume or snapshot lies on this disk.
	HoldsKeptVolumes Reason = "HoldsKeptVolumes"
	// Unbound: no claim was bound to it, or the claim is Lost.
	Unbound Reason = "Unbound"
	// Releasing: its claim is gone, and its provisioner deletes the disk.
	Releasing Reason = "Releasing"
	// PolicyDelete: it was provisioned for a claim, with the policy Delete.
	PolicyDelete Reason = "PolicyDelete"
)

// Decision is an action with its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// Kept reports whether the disk stays.
func (d Decision) Kept() bool { return d.Action == Keep || d.Action == Mark }

// Evident reports whether the end of the PersistentVolume shows the end of the disk (#12).
func (s State) Evident() bool { return s.Held }

// Decide returns what happens to a volume. It is total and pure. Whatever it does not know keeps the disk.
func Decide(s State) Decision {
	reason := keeps(s)
	switch {
	case reason == "" && s.Claim == Bound:
		return Decision{DeleteClaim, PolicyDelete}
	case reason == "":
		return Decision{Await, Releasing}
	case s.Marked:
		return Decision{Keep, reason}
	}
	return Decision{Mark, reason}
}

// keeps returns why the disk stays, "" if it is to be deleted.
func keeps(s State) Reason {
	switch {
	case s.Shared:
		// Deleting one of two volumes with one handle deletes the disk of the other, which may be kept or live elsewhere. It
		// comes first: the mark of a kept volume is the label and the policy Retain.
		return HandleShared
	case s.Preserved:
		return Preserved
	case !s.Deletable:
		return PolicyRetain
	case !s.Provisioned:
		return Static
	case s.Below:
		return HoldsKeptVolumes
	case s.Claim == Never, s.Claim == Lost:
		return Unbound
	}
	return ""
}
