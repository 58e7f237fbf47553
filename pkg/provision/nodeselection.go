package provision

import "fmt"

// Capacity is the result of the capacity check of a node for a claim.
type Capacity int

const (
	// CapacityUnknown: the driver was not asked yet.
	CapacityUnknown Capacity = iota
	// CapacityEnough: the volume fits, or the driver does not report capacity.
	CapacityEnough
	// CapacityShort: the volume does not fit.
	CapacityShort
)

// String returns the name of the result.
func (c Capacity) String() string {
	switch c {
	case CapacityUnknown:
		return "CapacityUnknown"
	case CapacityEnough:
		return "CapacityEnough"
	case CapacityShort:
		return "CapacityShort"
	}
	return fmt.Sprintf("Capacity(%d)", int(c))
}

// NodeState is what the provisioner of one node observed of a claim without a selected
// node.
type NodeState struct {
	// Wanted: the claim names the driver, has no volume and is not being deleted.
	Wanted bool
	// Server tells which process serves the claim.
	Server Server
	// ClassKnown: the storage class of the claim exists.
	ClassKnown bool
	// Immediate: the class has Immediate binding, so that nodes select themselves.
	Immediate bool
	// Allowed: the allowed topologies of the class include this node, and it reaches the source of a clone.
	Allowed bool
	// Capacity is the result of the capacity check.
	Capacity Capacity
}

// NodeAction is the next step of the provisioner of one node for a claim.
type NodeAction int

const (
	// SkipClaim: the claim does not need a node, or not this one.
	SkipClaim NodeAction = iota
	// CheckCapacity: ask the driver for capacity and decide again.
	CheckCapacity
	// RetryLater: requeue the claim with backoff.
	RetryLater
	// SelectNode: write this node into the claim.
	SelectNode
)

// String returns the name of the action.
func (a NodeAction) String() string {
	switch a {
	case SkipClaim:
		return "SkipClaim"
	case CheckCapacity:
		return "CheckCapacity"
	case RetryLater:
		return "RetryLater"
	case SelectNode:
		return "SelectNode"
	}
	return fmt.Sprintf("NodeAction(%d)", int(a))
}

// DecideNode returns the next step of the provisioner of one node for a claim. The first
// node that writes itself into the claim is selected.
func DecideNode(s NodeState) NodeAction {
	switch {
	case !s.Wanted || s.Server != NoProcess:
		return SkipClaim
	case !s.ClassKnown:
		return RetryLater
	case !s.Immediate || !s.Allowed:
		return SkipClaim
	case s.Capacity == CapacityUnknown:
		return CheckCapacity
	case s.Capacity == CapacityShort:
		return RetryLater
	}
	return SelectNode
}
