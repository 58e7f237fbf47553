package pod

import "github.com/exeunt-io/exeunt/internal/enum"

// Kind is what a pod is to its node.
type Kind int

const (
	// Ordinary pods are evicted first.
	Ordinary Kind = iota
	// Critical pods have a system priority class. They are evicted after the ordinary ones.
	Critical
	// Daemon pods are a DaemonSet's. They are evicted after the volumes of all others are detached.
	Daemon
	// Mirror pods stand for static pods, which only the kubelet ends.
	Mirror
)

// String returns the name of the value.
func (k Kind) String() string { return enum.Name(k, "Ordinary", "Critical", "Daemon", "Mirror") }

// End is how far a pod has ended.
type End int

const (
	// Running: the pod is not being deleted.
	Running End = iota
	// Finished: the pod is not being deleted, and its containers ended for good.
	Finished
	// InTime: Terminating, and its grace period ends by P, or within the second after it.
	InTime
	// BeyondP: Terminating, and its grace period ends later, or at a time that cannot be read.
	BeyondP
	// Overdue: Terminating, and the kubelet should have ended it a while ago.
	Overdue
	// ContainersEnded: Terminating, its containers ended, and a finalizer keeps the object.
	ContainersEnded
)

// String returns the name of the value.
func (e End) String() string {
	return enum.Name(e, "Running", "Finished", "InTime", "BeyondP", "Overdue", "ContainersEnded")
}

// Moment is how far the termination of the node has come for one pod.
type Moment int

const (
	// Early: L has not come.
	Early Moment = iota
	// FromL: L has come.
	FromL
	// FromShortening: P - 5 s has come.
	FromShortening
	// Proven: the machine is off.
	Proven
)

// String returns the name of the value.
func (m Moment) String() string { return enum.Name(m, "Early", "FromL", "FromShortening", "Proven") }

// Gate is what keeps a pod from being evicted before L.
type Gate int

const (
	// Open: nothing.
	Open Gate = iota
	// ByOrder: pods or volumes that go first are still there.
	ByOrder
	// ByAnnotation: the pod says karpenter.sh/do-not-disrupt.
	ByAnnotation
	// ByBudget: another pod of the same budget is being evicted.
	ByBudget
	// ByNamespace: the namespace is being deleted, which deletes the pod.
	ByNamespace
	// ByPause: the API server asked for a pause.
	ByPause
)

// String returns the name of the value.
func (g Gate) String() string {
	return enum.Name(g, "Open", "ByOrder", "ByAnnotation", "ByBudget", "ByNamespace", "ByPause")
}

// Answer is the last answer to an eviction of the pod. It becomes Untried when an eviction may succeed again.
type Answer int

const (
	// Untried: no eviction was sent since something changed.
	Untried Answer = iota
	// Blocked: a budget has no room.
	Blocked
	// Refused: the API server or a webhook refuses for another reason.
	Refused
)

// String returns the name of the value.
func (a Answer) String() string { return enum.Name(a, "Untried", "Blocked", "Refused") }

// State is what a decision about one pod rests on.
type State struct {
	Kind   Kind
	End    End
	Moment Moment
	Gate   Gate
	Answer Answer
	// Returns: the pod tolerates our taint, and its owner would create it on this node again.
	Returns bool
	// Volume: a volume is attached to the node for the pod.
	Volume bool
}
