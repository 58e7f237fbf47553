package nodes

import (
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// Phase is how much time has passed.
type Phase uint8

const (
	// Early: before L of each pod.
	Early Phase = iota
	// AtL: L of each pod has come.
	AtL
	// NearP: P - 5 s has come.
	NearP
	// AtE: the machine is to be stopped.
	AtE
)

// Power is the true state of the machine.
type Power uint8

const (
	// On: the machine runs.
	On Power = iota
	// Off: it does not, and its disks are kept.
	Off
	// Gone: it does not exist.
	Gone
)

// Attachment is the VolumeAttachment of the disk to the node.
type Attachment uint8

const (
	// Attached to the node.
	Attached Attachment = iota
	// Detaching: the detachment began.
	Detaching
	// Detached: the disk is free.
	Detached
)

// The pods of the node. Both are of one budget; the second one has the disk.
const (
	app = iota
	db
	pods
)

// Pod is a pod of the node, as the API server has it, and its process.
type Pod struct {
	Exists, Terminating, Long, Held bool
	// Runs: its process runs on the machine. Long: its grace period ends after P. Held: a finalizer of others.
	Runs   bool
	Answer pod.Answer
}

// Faults are what may still go wrong, or what a user may still do.
type Faults struct {
	KubeletDies, KubeletReturns, Lies, ComesBack, Crashes, PowersOff, AdminTaints, Strips, Spot uint8
}

// State is a state of the world. It is comparable: it is its own key.
type State struct {
	Phase Phase
	// The Node object.
	Exists, Deleting, Protected, Begun, Marked, AdminMarked bool
	// The machine, and its kubelet.
	Power   Power
	Kubelet bool
	Lying   bool
	Pods    [pods]Pod
	// The disk: attached to the node, mounted by the machine, written by the replacement on another node.
	Disk    Attachment
	Mounted bool
	Moved   bool
	// Room: the budget allows one disruption.
	Room bool
	// What node-terminator remembers: the last answer of the provider, how often it came, a Delete that was sent.
	Answered node.Instance
	Answers  uint8
	Deleted  bool
	Left     Faults
}

// stop ends everything that runs on the machine.
func (s *State) stop(power Power) {
	s.Power, s.Mounted = power, false
	for i := range s.Pods {
		s.Pods[i].Runs = false
	}
}

// renew has the kubelet renew its Lease, which node-terminator sees: what was proven before does not count.
func (s *State) renew() {
	s.Kubelet, s.Answers = true, 0
	if s.Answered == node.Off {
		s.Answered = node.Running
	}
}

// runs reports whether a process of a pod runs.
func (s State) runs() bool { return s.Pods[app].Runs || s.Pods[db].Runs }

// renews reports whether the kubelet renews the Lease.
func (s State) renews() bool { return s.Kubelet && s.Power == On }
