package nodes

import (
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// Power is the true state of a machine.
type Power uint8

const (
	// On: the machine runs.
	On Power = iota
	// Off: it does not, and its disks are kept.
	Off
	// Gone: it does not exist.
	Gone
)

// Attachment is the VolumeAttachment of the disk.
type Attachment uint8

const (
	// Attached to its node.
	Attached Attachment = iota
	// Detaching: the detachment began.
	Detaching
	// Detached: the disk is free.
	Detached
)

// nodes is the number of nodes. If only the first one is deleted, the second one takes the replacement of the db.
const nodes = 2

// The pods. All but a driver are of one budget.
const (
	app = iota
	// db has the disk.
	db
	// third is the peer on the second node, or the driver on the first one: the pod of a DaemonSet, without which the
	// kubelet cannot unmount the disk.
	third
	pods
)

// Node is a Node, as the API server has it.
type Node struct {
	Exists, Deleting, Protected, Begun, Marked, AdminMarked bool
	// Again: it is the second one of its name. Beat changes when its kubelet returns, which writes its status.
	Again, Beat bool
	// Deadline is the annotation, none for 0.
	Deadline Second
}

// Pod is a pod, as the API server has it.
type Pod struct {
	// Held: a finalizer of others is on it. Ended: its status says that its containers ended. Again: it is the second one
	// of its name. Short: its grace period is one second.
	Exists, Held, Ended, Again, Short bool
	// On is its node.
	On uint8
	// Ends is when its grace period ends, 0 if it is not Terminating.
	Ends Second
}

// Disk is the VolumeAttachment of the disk to a node.
type Disk struct {
	On    uint8
	State Attachment
}

// on reports whether the disk is attached to the node.
func (d Disk) on(n int) bool { return int(d.On) == n && d.State != Detached }

// API is what the API server has.
type API struct {
	Nodes [nodes]Node
	Pods  [pods]Pod
	Disk  Disk
}

// Machine is a machine, its kubelet, and which pods run on it.
type Machine struct {
	Power                   Power
	Kubelet, Lying, Mounted bool
	Runs                    [pods]bool
}

// stop ends everything that runs on the machine.
func (m *Machine) stop(power Power) { m.Power, m.Mounted, m.Runs = power, false, [pods]bool{} }

// Watch is what a watch shows.
type Watch uint8

const (
	// None of the watches is late.
	None Watch = iota
	// Nodes: all Nodes.
	Nodes
	// Pods: all pods.
	Pods
	// Attachments: that of the disk.
	Attachments
)

// Memory is what the leader remembers of a Node: the last answer of the provider, how often it came, a Delete that was
// sent, and the deadline that it obeys. Again is that of the Node.
type Memory struct {
	Answered       node.Instance
	Answers        uint8
	Deleted, Again bool
	Obeyed         Second
}

// Leader is the process that leads.
type Leader struct {
	// View is what its caches show; Late is the watch that shows nothing new.
	View   API
	Late   Watch
	Memory [nodes]Memory
	// Heard are the answers to evictions.
	Heard [pods]pod.Answer
}

// Write is a request about a node, or about a pod if PodAction is not Leave. Seen and SeenPod are the objects that it
// rests on.
type Write struct {
	Sent, Proven bool
	Node, Pod    uint8
	Seen         Node
	SeenPod      Pod
	Deadline     Second
	Grace        Second
	Action       node.Action
	PodAction    pod.Action
}

// Faults are what may still go wrong, or what a user may still do.
type Faults struct {
	KubeletDies, KubeletReturns, Lies, Errs, ComesBack, Crashes, PowersOff, AdminTaints, Strips, Spot, Edits, DeletesPod,
	Registers, Stalls, LateWrites uint8
}

// State is a state of the world. It is comparable: it is its own key.
type State struct {
	API
	Machines [nodes]Machine
	// Age is how many instants have passed since the Node was deleted, Due the earliest deadline that somebody wrote.
	Age [nodes]uint8
	Due [nodes]Second
	// Replaced: a replacement elsewhere is Ready. That of the db needs its disk.
	Replaced [pods]bool
	Leader   Leader
	// Late is a request of a former leader that takes effect at any time.
	Late   Write
	Left   Faults
	Broken Rules
}

// renews reports whether the kubelet renews the Lease.
func (s *State) renews(n int) bool { return s.Machines[n].Kubelet && s.Machines[n].Power == On }

// renew has the kubelet renew its Lease, which the leader sees: what was proven before does not count.
func (s *State) renew(n int) {
	s.Machines[n].Kubelet, s.Nodes[n].Beat = true, !s.Nodes[n].Beat
	m := &s.Leader.Memory[n]
	if m.Answers = 0; m.Answered == node.Off {
		m.Answered = node.Running
	}
}

// isOn reports whether the pod is there, on this node.
func (p Pod) isOn(n int) bool { return p.Exists && int(p.On) == n }

// leave removes the object, unless a finalizer of others keeps it.
func (p *Pod) leave() {
	if !p.Held {
		*p = Pod{Again: p.Again, On: p.On}
	}
}

// outOfService reports whether the Node has the taint.
func (n Node) outOfService() bool { return n.Exists && (n.Marked || n.AdminMarked) }

// room reports whether the budget allows a disruption: all of its pods are there, or replaced.
func (w World) room(s *State) bool {
	for i, p := range s.Pods {
		if w.budgeted(i) && !s.Replaced[i] && (!p.Exists || p.Ends != 0) {
			return false
		}
	}
	return true
}

// budgeted reports whether the pod is of the budget.
func (w World) budgeted(i int) bool { return w.has(i) && !w.isDriver(i) }
