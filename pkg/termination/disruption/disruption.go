package disruption

import "github.com/exeunt-io/exeunt/internal/enum"

// Cause is why a node is to be replaced.
type Cause int

const (
	// NoCause: the claim is as it should be.
	NoCause Cause = iota
	// Drifted: the claim has the condition Drifted.
	Drifted
	// Expired: the claim is older than its expireAfter.
	Expired
)

// String returns the name of the value.
func (c Cause) String() string { return enum.Name(c, "NoCause", "Drifted", "Expired") }

// Pods is what the pods of the node say.
type Pods int

const (
	// Unknown: the pods or their budgets are not known.
	Unknown Pods = iota
	// Blocked: a pod cannot be evicted now: of a budget without room, of two budgets, or because of do-not-disrupt.
	Blocked
	// Free: each pod can be evicted.
	Free
)

// String returns the name of the value.
func (p Pods) String() string { return enum.Name(p, "Unknown", "Blocked", "Free") }

// State is what a decision about one claim rests on.
type State struct {
	Cause Cause
	Pods  Pods
	// Served: the node is ours, and node and claim have our finalizer.
	Served bool
	// Deleted: the node or the claim is being deleted.
	Deleted bool
	// Kept: the node or the claim says karpenter.sh/do-not-disrupt.
	Kept bool
	// Room: fewer nodes are being terminated than may be at once.
	Room bool
	// Limited: the claim has a T, so the node ends whatever its pods say.
	Limited bool
}

// Action is what is done.
type Action int

const (
	// Wait does nothing.
	Wait Action = iota
	// Look watches the pods of the node.
	Look
	// Delete deletes the claim, and with it the node.
	Delete
)

// String returns the name of the value.
func (a Action) String() string { return enum.Name(a, "Wait", "Look", "Delete") }

// Reason is the reason of a decision.
type Reason string

const (
	// NothingToDo: the claim is as it should be.
	NothingToDo Reason = "NoCause"
	// NotServed: the node is not ours, or its deletion would not be seen.
	NotServed Reason = "NotServed"
	// Terminating: the node is being deleted.
	Terminating Reason = "Terminating"
	// DoNotDisrupt: the node or the claim says karpenter.sh/do-not-disrupt.
	DoNotDisrupt Reason = "DoNotDisrupt"
	// OthersTerminate: as many nodes are being terminated as may be at once.
	OthersTerminate Reason = "OthersTerminate"
	// PodsUnknown: the pods of the node or their budgets are not known.
	PodsUnknown Reason = "PodsUnknown"
	// PodsBlock: a pod cannot be evicted, and the claim has no T.
	PodsBlock Reason = "PodsBlock"
	// Replaced: the node is deleted.
	Replaced Reason = "Replaced"
)

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// String returns the action and the reason.
func (d Decision) String() string { return d.Action.String() + ", " + string(d.Reason) }

// Decide returns what is done about the cause. It is total and pure.
func Decide(s State) Decision {
	switch {
	case s.Cause == NoCause:
		return Decision{Wait, NothingToDo}
	case !s.Served:
		return Decision{Wait, NotServed}
	case s.Deleted:
		return Decision{Wait, Terminating}
	case s.Kept:
		return Decision{Wait, DoNotDisrupt}
	case !s.Limited && s.Pods == Blocked: // no end of another node would help
		return Decision{Look, PodsBlock}
	case !s.Room:
		return Decision{Wait, OthersTerminate}
	case s.Limited || s.Pods == Free:
		return Decision{Delete, Replaced}
	}
	return Decision{Look, PodsUnknown}
}
