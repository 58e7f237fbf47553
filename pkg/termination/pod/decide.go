package pod

import "github.com/exeunt-io/exeunt/internal/enum"

// Action is what is done to a pod.
type Action int

const (
	// Leave does nothing, and the node does not wait for the pod.
	Leave Action = iota
	// Wait does nothing, and the node waits for the pod.
	Wait
	// Evict asks for an eviction, which a budget may refuse.
	Evict
	// Delete deletes the pod with what is left of its grace period.
	Delete
	// Shorten deletes a Terminating pod again, with one second.
	Shorten
	// Remove deletes the pod with the grace period 0. Its machine is off.
	Remove
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Leave", "Wait", "Evict", "Delete", "Shorten", "Remove")
}

// Reason is the reason of a decision.
type Reason string

const (
	// ToEvict: nothing keeps the pod from being evicted.
	ToEvict Reason = "ToEvict"
	// DeadlineNear: the grace period of the pod would pass P.
	DeadlineNear Reason = "DeadlineNear"
	// OrderKeeps: pods or volumes that go first are still there.
	OrderKeeps Reason = "OrderKeeps"
	// DoNotDisrupt: the pod says karpenter.sh/do-not-disrupt.
	DoNotDisrupt Reason = "DoNotDisrupt"
	// BudgetInUse: another pod of the same budget is being evicted.
	BudgetInUse Reason = "BudgetInUse"
	// BudgetBlocks: a PodDisruptionBudget has no room.
	BudgetBlocks Reason = "BudgetBlocks"
	// EvictionRefused: the API server or a webhook refuses the eviction.
	EvictionRefused Reason = "EvictionRefused"
	// NamespaceEnds: the namespace is being deleted, which deletes the pod.
	NamespaceEnds Reason = "NamespaceEnds"
	// RequestsPause: the API server asked for a pause.
	RequestsPause Reason = "RequestsPause"
	// Terminating: the pod ends in time.
	Terminating Reason = "Terminating"
	// TerminatingBeyond: the grace period of the Terminating pod ends after P.
	TerminatingBeyond Reason = "TerminatingBeyond"
	// KubeletStuck: the kubelet should have ended the pod a while ago.
	KubeletStuck Reason = "KubeletStuck"
	// ForeignFinalizer: the containers ended, and a finalizer keeps the object.
	ForeignFinalizer Reason = "ForeignFinalizer"
	// ContainersFinished: the containers ended for good.
	ContainersFinished Reason = "ContainersFinished"
	// StaticPod: only the kubelet ends the pod.
	StaticPod Reason = "StaticPod"
	// WouldReturn: the owner would create the pod on this node again.
	WouldReturn Reason = "WouldReturn"
	// MachineOff: the machine is proven to be off.
	MachineOff Reason = "MachineOff"
	// GoesWithNode: the garbage collection of pods removes the pod once the node is gone.
	GoesWithNode Reason = "GoesWithNode"
)

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// String returns the action and the reason.
func (d Decision) String() string { return d.Action.String() + ", " + string(d.Reason) }

// Decide returns what happens to one pod. It is total and pure.
func Decide(s State) Decision {
	switch {
	case s.Moment == Proven:
		return decideProven(s)
	case s.Kind == Mirror:
		return Decision{Leave, StaticPod}
	case s.End != Running:
		return decideEnding(s)
	case s.Returns:
		return Decision{Leave, WouldReturn}
	case s.Moment == Early:
		return decideEarly(s)
	case s.Answer != Untried || s.Gate == ByNamespace || s.Gate == ByPause:
		return Decision{Delete, DeadlineNear}
	}
	return Decision{Evict, DeadlineNear}
}

// decideProven removes what the machine can no longer run. Before the proof a pod that is removed with the grace
// period 0 may still write to its volume, while its replacement writes to the same volume on another node.
func decideProven(s State) Decision {
	if s.Kind == Daemon && !s.Volume {
		return Decision{Leave, GoesWithNode}
	}
	return Decision{Remove, MachineOff}
}

func decideEnding(s State) Decision {
	switch {
	case s.End == Finished:
		return Decision{Leave, ContainersFinished}
	case s.End == ContainersEnded:
		return Decision{Leave, ForeignFinalizer}
	case s.End == Overdue:
		return Decision{Leave, KubeletStuck}
	case s.End == InTime:
		return Decision{Wait, Terminating}
	case s.Kind == Daemon: // the pods that it serves end at P, and the machine is stopped soon after
		return Decision{Wait, TerminatingBeyond}
	case s.Moment == FromShortening:
		return Decision{Shorten, TerminatingBeyond}
	}
	return Decision{Wait, TerminatingBeyond}
}

// decideEarly respects whatever keeps the pod: only an eviction may end the pod before L.
func decideEarly(s State) Decision {
	switch {
	case s.Gate != Open:
		return Decision{Wait, s.Gate.reason()}
	case s.Answer == Blocked:
		return Decision{Wait, BudgetBlocks}
	case s.Answer == Refused:
		return Decision{Wait, EvictionRefused}
	}
	return Decision{Evict, ToEvict}
}

func (g Gate) reason() Reason {
	switch g {
	case ByOrder:
		return OrderKeeps
	case ByAnnotation:
		return DoNotDisrupt
	case ByBudget:
		return BudgetInUse
	case ByNamespace:
		return NamespaceEnds
	default:
		return RequestsPause
	}
}
