package garbage

import "github.com/exeunt-io/exeunt/internal/enum"

// Decide returns the next step for one object. It is total and pure.
func Decide(s State) Decision {
	switch {
	// A list may lack an object that exists: the answer of a cache, or a page that expired. Nothing is judged by that.
	case s.Missing:
		return Decision{VerifyObject, MissingInList}
	case s.Deleting:
		return decideDeleting(s)
	case s.Sent:
		return Decision{Wait, DeleteSent}
	case !s.owned():
		return Decision{Wait, NoOwner}
	// An owner that the graph does not have may have been created a moment ago, or be of a kind that is listed late. Its
	// dependents would be deleted under it.
	case s.Unverified:
		return Decision{VerifyOwners, OwnerUnverified}
	// The user wants to keep the dependents of this owner. They lose the reference before the owner is gone, or they are
	// garbage.
	case s.Orphaning:
		return Decision{RemoveReferences, OwnerOrphans}
	// Another owner keeps the object: only the references to those that are gone, or that wait for it, go.
	case s.Live && (s.Absent || s.Waiting):
		return Decision{RemoveReferences, OwnerLives}
	case s.Live:
		return Decision{Wait, OwnerLives}
	// The owner may exist where nobody can look: its kind is not served now. The object stays.
	case s.Unresolvable:
		return Decision{Wait, OwnerUnresolvable}
	}
	return decideGarbage(s)
}

// decideGarbage deletes an object all of whose owners are absent or wait. A finalizer that
// is already on the object selects the policy.
func decideGarbage(s State) Decision {
	reason := OwnersAbsent
	if s.Waiting {
		reason = OwnersWait
	}
	switch {
	case s.Orphan:
		return Decision{DeleteOrphan, reason}
	case s.Foreground || s.Waiting && s.Dependents:
		return Decision{DeleteForeground, reason}
	// The object may have dependents that the graph does not show yet. Deleted in the background, it would be gone before
	// them, and its owners, which must outlive them, be released.
	case s.Waiting && !s.Seen:
		return Decision{AwaitBarrier, KindsUnseen}
	}
	return Decision{DeleteBackground, reason}
}

func decideDeleting(s State) Decision {
	switch {
	// An owner may have been deleted with the policy Orphan: then this object must lose the reference, not wait with it.
	case s.Unverified:
		return Decision{VerifyOwners, OwnerUnverified}
	case s.Orphaning:
		return Decision{RemoveReferences, OwnerOrphans}
	// A dependent that was committed before the deletion, and not seen yet, would keep its reference. Without this
	// finalizer the owner is gone, and the dependent, which its user wants to keep, deleted as garbage. So it is with
	// those that are seen.
	case s.Orphan && !s.Seen:
		return Decision{AwaitBarrier, KindsUnseen}
	case s.Orphan && s.Dependents:
		return Decision{Wait, DependentsRefer}
	case s.Orphan:
		return Decision{RemoveOrphan, DependentsGone}
	case !s.Foreground:
		return Decision{Wait, Terminating}
	case !s.Seen: // the barrier runs while the dependents are being deleted
		return Decision{AwaitBarrier, KindsUnseen}
	case s.Blocking:
		return Decision{Wait, DependentsBlock}
	}
	return Decision{RemoveForeground, DependentsGone}
}

// ComponentState is what is known of owners that wait for each other: a strongly connected
// component over references that block, among owners deleted in the foreground.
type ComponentState struct {
	// BlockedOutside: a dependent that is no member blocks a member.
	BlockedOutside bool
	// Seen: every member has passed a barrier.
	Seen bool
	// Read: every member was read live.
	Read bool
	// Changed: a member has other references or finalizers than in the graph, or is gone.
	Changed bool
}

// ComponentAction is the next step for a component.
type ComponentAction int

const (
	// AwaitOutside waits for dependents that are no members.
	AwaitOutside ComponentAction = iota
	// AwaitMembers waits for the barriers of the members.
	AwaitMembers
	// ReadMembers reads every member live.
	ReadMembers
	// Recompute computes the components anew.
	Recompute
	// ReleaseMembers removes foregroundDeletion from every member.
	ReleaseMembers
)

// String returns the name of the value.
func (a ComponentAction) String() string {
	return enum.Name(a, "AwaitOutside", "AwaitMembers", "ReadMembers", "Recompute", "ReleaseMembers")
}

// DecideComponent returns the next step for a component. It is total and pure.
func DecideComponent(s ComponentState) ComponentAction {
	switch {
	case s.BlockedOutside:
		return AwaitOutside
	case !s.Seen:
		return AwaitMembers
	case !s.Read:
		return ReadMembers
	case s.Changed:
		return Recompute
	}
	return ReleaseMembers
}
