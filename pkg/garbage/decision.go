package garbage

import "github.com/exeunt-io/exeunt/internal/enum"

// Action is the next step for one object. Every action may be executed twice.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// VerifyObject reads the object live.
	VerifyObject
	// VerifyOwners reads the unverified owners live, and decides again.
	VerifyOwners
	// AwaitBarrier waits until the graph has seen every kind.
	AwaitBarrier
	// RemoveReferences removes the references to absent and orphaning owners, and to waiting ones if another owner lives.
	RemoveReferences
	// DeleteBackground, DeleteForeground and DeleteOrphan delete the object with the policy.
	DeleteBackground
	// DeleteForeground: see DeleteBackground.
	DeleteForeground
	// DeleteOrphan: see DeleteBackground.
	DeleteOrphan
	// RemoveForeground removes the finalizer foregroundDeletion.
	RemoveForeground
	// RemoveOrphan removes the finalizer orphan.
	RemoveOrphan
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "VerifyObject", "VerifyOwners", "AwaitBarrier", "RemoveReferences", "DeleteBackground",
		"DeleteForeground", "DeleteOrphan", "RemoveForeground", "RemoveOrphan")
}

// Deletes reports whether the action deletes the object.
func (a Action) Deletes() bool {
	return a == DeleteBackground || a == DeleteForeground || a == DeleteOrphan
}

// Reason is the reason of a decision.
type Reason int

const (
	// NoOwner: the object has no owner references.
	NoOwner Reason = iota
	// OwnerLives: an owner lives.
	OwnerLives
	// OwnerUnresolvable: the kind of an owner is not served, or cannot own the object.
	OwnerUnresolvable
	// OwnerUnverified: an owner has to be read live.
	OwnerUnverified
	// OwnerOrphans: an owner is deleted, and its dependents stay.
	OwnerOrphans
	// OwnersAbsent: all owners are absent.
	OwnersAbsent
	// OwnersWait: all owners are absent or wait for the object.
	OwnersWait
	// MissingInList: a list did not have the object.
	MissingInList
	// DeleteSent: the deletion was sent, and its event has not come yet.
	DeleteSent
	// Terminating: the object waits for finalizers of other controllers.
	Terminating
	// DependentsBlock: dependents block the deletion.
	DependentsBlock
	// DependentsRefer: dependents still refer to the orphaning object.
	DependentsRefer
	// KindsUnseen: the graph may lack objects that were committed before the deletion.
	KindsUnseen
	// DependentsGone: no dependent is left that the deletion waits for.
	DependentsGone
)

// String returns the name of the value.
func (r Reason) String() string {
	return enum.Name(r, "NoOwner", "OwnerLives", "OwnerUnresolvable", "OwnerUnverified", "OwnerOrphans", "OwnersAbsent",
		"OwnersWait", "MissingInList", "DeleteSent", "Terminating", "DependentsBlock", "DependentsRefer", "KindsUnseen",
		"DependentsGone")
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}
