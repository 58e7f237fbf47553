package nodes

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/model/explore"
)

// The rules.
const (
	// TwoWriters: two machines write to one disk.
	TwoWriters = "TwoWriters"
	// DiskLost: a machine is deleted while a disk is attached to it.
	DiskLost = "DiskLost"
	// BudgetBroken: a pod is deleted before L.
	BudgetBroken = "BudgetBroken"
	// RunningPodRemoved: a pod is removed with the grace period 0 while its process runs.
	RunningPodRemoved = "RunningPodRemoved"
	// RunningPodReleased: the Node goes while a process of a pod runs, so that podgc frees the pod for another node.
	RunningPodReleased = "RunningPodReleased"
	// NodeStuck: nothing happens any more, and the Node is there without a reason that somebody else can end.
	NodeStuck = "NodeStuck"
	// PodStuck: the Node is gone, and a pod of it is there without a finalizer of others.
	PodStuck = "PodStuck"
	// ReleasedEarly: the Node of a machine that is off is released before the detachment of its disk begins.
	ReleasedEarly = "ReleasedEarly"
)

// World is a world to explore.
type World struct {
	Name     string
	Provider node.Provider
	// Deadline: the node has one. NoStop: the provider cannot stop machines. NoDetach: the attach-detach controller does
	// not run. DetachFails: its detachments fail. AdminErrs: an administrator says that a running machine is off.
	Deadline, NoStop, NoDetach, DetachFails, AdminErrs bool
	// Shared: the disk is a network file system, which needs no attachment.
	Shared bool
	// Long: the grace period of the second pod ends after P. Held: the first pod has a finalizer of others.
	Long, Held bool
	Left       Faults
	// Unknown: the provider does not know the machine.
	Unknown bool
	// Decide and Prove replace the real decision and the proof in tests of the model.
	Decide func(node.State) node.Decision
	Prove  func(World, State) node.Proof
	// Waits are the reasons for which a deleted Node may be there at rest.
	Waits []node.Reason
}

// Initial is a node with two pods that run, and a disk.
func (w World) Initial() State {
	s := State{Exists: true, Kubelet: true, Mounted: true, Room: true, Left: w.Left}
	if w.Shared {
		s.Disk = Detached
	}
	s.Pods[app] = Pod{Exists: true, Runs: true, Held: w.Held}
	s.Pods[db] = Pod{Exists: true, Runs: true, Long: w.Long}
	return s
}

// Key is the state itself.
func (w World) Key(s State) State { return s }

// Steps are those of node-terminator and of everybody else.
func (w World) Steps(s State) ([]explore.Step[State], error) {
	var steps []explore.Step[State]
	add := func(says string, after State, free bool, broken []string) {
		if after == s {
			return
		}
		if after.Moved && after.Power == On && after.Mounted && after.Pods[db].Runs {
			broken = append(broken, TwoWriters)
		}
		found := explore.Step[State]{Says: says, After: after, Free: free}
		for _, rule := range broken {
			found.Broken = append(found.Broken, explore.Finding{Rule: rule, Sentence: fmt.Sprintf("%s: %+v", says, after)})
		}
		// What becomes of a machine that runs without its Node is as without node-terminator.
		found.Ends = len(broken) > 0 || !after.Exists && after.Power == On
		steps = append(steps, found)
	}
	if s.Exists {
		w.ours(s, add)
	}
	for _, other := range w.others(s) {
		add(other.says, other.after, other.free, nil)
	}
	return steps, nil
}

// ours are the steps of node-terminator.
func (w World) ours(s State, add func(string, State, bool, []string)) {
	after, d, broken := w.terminate(s)
	add("node: "+d.String(), after, true, broken)
	for i := range s.Pods {
		if s.Pods[i].Exists {
			after, d, broken := w.end(s, i)
			add(fmt.Sprintf("pod %d: %v", i, d), after, true, broken)
		}
	}
	if w.Provider == node.Socket && s.Begun && s.Protected {
		add("node-terminator asks the provider", w.ask(s), true, nil)
	}
}

// AtRest returns what is wrong with a state in which nothing happens any more.
func (w World) AtRest(s State, _ bool) []explore.Finding {
	var found []explore.Finding
	if d := w.decide(s); s.Exists && s.Deleting && s.Protected && !w.mayWait(s, d) {
		found = append(found, explore.Finding{Rule: NodeStuck, Sentence: fmt.Sprintf("%v: %+v", d, s)})
	}
	for i, p := range s.Pods {
		if p.Exists && !p.Held && !s.Exists {
			found = append(found, explore.Finding{Rule: PodStuck, Sentence: fmt.Sprintf("pod %d: %+v", i, s)})
		}
	}
	return found
}

func (w World) mayWait(s State, d node.Decision) bool {
	if d.Action != node.Wait {
		return false
	}
	for _, reason := range w.Waits {
		if d.Reason == reason {
			return true
		}
	}
	// Without a deadline a node waits for a pod that a budget keeps.
	return !w.Deadline && d.Reason == node.Draining && w.blocked(s)
}

func (w World) blocked(s State) bool {
	for i, p := range s.Pods {
		if d := pod.Decide(w.podState(s, i)); p.Exists && (d.Action == pod.Wait) {
			return true
		}
	}
	return false
}

// Worlds are the worlds that are explored.
func Worlds() []World {
	faults := Faults{KubeletDies: 1, KubeletReturns: 1, Crashes: 1}
	with := func(change func(*Faults)) Faults {
		left := faults
		change(&left)
		return left
	}
	return []World{
		{Name: "socket", Provider: node.Socket, Deadline: true, Left: faults},
		{Name: "socket, a long grace period", Provider: node.Socket, Deadline: true, Long: true, Left: faults},
		{Name: "socket, a foreign finalizer", Provider: node.Socket, Deadline: true, Held: true, Left: faults},
		{Name: "socket, no deadline", Provider: node.Socket, Left: faults},
		{Name: "socket, a machine that comes back", Provider: node.Socket, Deadline: true,
			Left: with(func(f *Faults) { f.ComesBack = 2 })},
		{Name: "socket, a provider that lies", Provider: node.Socket, Deadline: true,
			Left: Faults{Lies: 1, Crashes: 1}},
		{Name: "socket, a machine that is taken away", Provider: node.Socket, Deadline: true,
			Left:  with(func(f *Faults) { f.Spot = 1 }),
			Waits: []node.Reason{node.InstanceUnknown}},
		{Name: "socket, an unknown machine", Provider: node.Socket, Deadline: true, Unknown: true, Left: faults,
			Waits: []node.Reason{node.InstanceUnknown}},
		{Name: "socket, a stripped finalizer", Provider: node.Socket, Deadline: true, Left: with(func(f *Faults) { f.Strips = 1 })},
		{Name: "socket without Stop", Provider: node.Socket, Deadline: true, NoStop: true, Left: faults,
			Waits: []node.Reason{node.DisksAttached}},
		{Name: "socket, detach fails", Provider: node.Socket, Deadline: true, DetachFails: true, Left: faults,
			Waits: []node.Reason{node.AwaitingVolumeDetachment}},
		{Name: "socket, no attach-detach controller", Provider: node.Socket, Deadline: true, NoDetach: true, Left: faults,
			Waits: []node.Reason{node.DetachNotStarted}},
		{Name: "manual", Provider: node.Manual, Deadline: true,
			Left:  with(func(f *Faults) { f.PowersOff, f.AdminTaints = 1, 1 }),
			Waits: []node.Reason{node.AwaitingPowerOff}},
		{Name: "manual, an administrator who errs", Provider: node.Manual, Deadline: true, AdminErrs: true,
			Left:  Faults{AdminTaints: 1, Crashes: 1},
			Waits: []node.Reason{node.ProofIncomplete}},
		{Name: "socket, a network file system", Provider: node.Socket, Deadline: true, Shared: true, Left: faults},
		{Name: "manual, a network file system", Provider: node.Manual, Deadline: true, Shared: true,
			Left:  with(func(f *Faults) { f.PowersOff, f.AdminTaints = 1, 1 }),
			Waits: []node.Reason{node.AwaitingPowerOff}},
		{Name: "none", Provider: node.NoProvider, Deadline: true, Left: faults},
		{Name: "none, no deadline", Provider: node.NoProvider, Left: Faults{Crashes: 1}},
	}
}
