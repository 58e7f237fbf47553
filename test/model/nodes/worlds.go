package nodes

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/model/explore"
)

// World is a world to explore: a node with an app, and a db that has a disk; and a second node.
type World struct {
	Name     string
	Provider node.Provider
	// Deadline: the nodes have one. NoStop: the provider cannot stop machines. NoDetach: the attach-detach controller does
	// not run. DetachFails: its detachments fail. AdminErrs: an administrator says that a running machine is off.
	Deadline, NoStop, NoDetach, DetachFails, AdminErrs bool
	// Shared: the disk is a network file system, which needs no attachment.
	Shared bool
	// Two: the second node is deleted, too, and has a pod of the budget. Driver: the first one has a driver.
	Two, Driver bool
	// Without are pods that do not exist.
	Without [pods]bool
	// Long: the grace period of the db is longer than the period, and it ignores SIGTERM. Held: the app has a finalizer of
	// others.
	Long, Held bool
	// Fine: more instants.
	Fine bool
	Left Faults
	// Unknown: the provider does not know the machines.
	Unknown bool
	// Decide, Prove, Observe and Tighten replace the real decision, the proof, and what is read, in tests of the model.
	Decide  func(node.State) node.Decision
	Prove   func(World, *State, int) node.Proof
	Observe func(pod.View, *v1.Pod, pod.Tiers) pod.State
	Tighten func(deadline.Deadline, string) deadline.Deadline
	// Defects of the shell, for tests of the model. Unread: the Node is not read live, UIDUnread: whatever its UID is.
	// LeaseUnread: the Lease is not. Unlisted: attachments are not. StopDeletes: the provider deletes what it should stop.
	Unread, UIDUnread, LeaseUnread, Unlisted, StopDeletes bool
	// seen has what was decided about a pod before.
	seen map[question]judged
	// Waits are the reasons for which a deleted Node may be there at rest.
	Waits []node.Reason
}

// deleted returns how many nodes may be deleted.
func (w World) deleted() int {
	if w.Two {
		return nodes
	}
	return 1
}

// has reports whether the pod exists in the world.
func (w World) has(i int) bool { return !w.Without[i] && (i != third || w.Two || w.Driver) }

// isDriver reports whether the pod is the driver.
func (w World) isDriver(i int) bool { return w.Driver && i == third }

// due returns the deadline of each node before somebody edits it.
func (w World) due() Second {
	if w.Deadline {
		return period
	}
	return 0
}

// Initial is two nodes with pods that run, and a disk.
func (w World) Initial() State {
	s := State{Left: w.Left}
	for n := range nodes {
		s.Nodes[n], s.Machines[n].Kubelet, s.Due[n] = Node{Exists: true}, true, w.due()
	}
	for i := range pods {
		if !w.has(i) {
			continue
		}
		s.Pods[i] = Pod{Exists: true, Held: w.Held && i == app}
		if i == third && w.Two {
			s.Pods[i].On = 1
		}
		s.Machines[s.Pods[i].On].Runs[i] = true
	}
	if s.Machines[0].Mounted = w.has(db); !w.has(db) || w.Shared {
		s.Disk.State = Detached
	}
	w.look(&s)
	return s
}

// Exploration is a world that is explored. What everybody but the leader may do is the same in each state.
type Exploration struct {
	World
	actions []action
}

// action is what somebody may do.
type action struct {
	free   bool
	says   string
	change func(*State)
}

// Explore returns the world to explore.
func (w World) Explore() Exploration {
	w.seen = map[question]judged{}
	e := Exploration{World: w}
	add := func(free bool, says string, change func(*State)) {
		e.actions = append(e.actions, action{free, says, change})
	}
	w.others(add)
	w.faults(add)
	w.users(add)
	return e
}

// Key is the state itself.
func (e Exploration) Key(s State) State { return s }

// Steps are those of the leader and of everybody else.
func (e Exploration) Steps(s State) ([]explore.Step[State], error) {
	var steps []explore.Step[State]
	add := func(free bool, says string, change func(*State)) {
		after := s
		if change(&after); after == s {
			return
		}
		e.look(&after)
		if after.twoWriters() {
			after.Broken |= TwoWriters
		}
		found := explore.Step[State]{Says: says, Free: free, Broken: after.Broken.findings(says, after)}
		found.Ends, after.Broken = after.Broken != 0 || after.isUnguarded(), 0
		found.After = after
		steps = append(steps, found)
	}
	e.lead(&s, add)
	for _, a := range e.actions {
		add(a.free, a.says, a.change)
	}
	return steps, nil
}

// isUnguarded reports whether a machine writes to the disk without its Node. What becomes of it is as without
// node-terminator.
func (s *State) isUnguarded() bool {
	for n, m := range s.Machines {
		if m.Runs[db] && !s.Nodes[n].Exists {
			return true
		}
	}
	return false
}

var faults = Faults{KubeletDies: 1, KubeletReturns: 1, Crashes: 1}

// with returns the usual faults with others.
func with(change func(*Faults)) Faults {
	left := faults
	change(&left)
	return left
}

// Worlds are worlds in which the first node is deleted.
func Worlds() []World {
	return []World{
		{Name: "socket", Provider: node.Socket, Deadline: true, Fine: true, Left: faults},
		{Name: "socket, a long grace period", Provider: node.Socket, Deadline: true, Long: true, Fine: true,
			Left: Faults{KubeletDies: 1, DeletesPod: 1, Crashes: 1}},
		{Name: "socket, a foreign finalizer", Provider: node.Socket, Deadline: true, Held: true, Left: faults},
		{Name: "socket, no deadline", Provider: node.Socket, Fine: true, Left: faults},
		{Name: "socket, a machine that comes back", Provider: node.Socket, Deadline: true,
			Left: with(func(f *Faults) { f.ComesBack = 2 })},
		{Name: "socket, a provider that lies", Provider: node.Socket, Deadline: true,
			Left: Faults{Lies: 1, Crashes: 1}},
		{Name: "socket, a machine that is taken away", Provider: node.Socket, Deadline: true,
			Left:  with(func(f *Faults) { f.Spot = 1 }),
			Waits: []node.Reason{node.InstanceUnknown}},
		{Name: "socket, an unknown machine", Provider: node.Socket, Deadline: true, Unknown: true, Left: faults,
			Waits: []node.Reason{node.InstanceUnknown}},
		{Name: "socket, a stripped finalizer", Provider: node.Socket, Deadline: true,
			Left: with(func(f *Faults) { f.Strips = 1 })},
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

// Larger are worlds with two nodes, late watches, former leaders, and users who edit.
func Larger() []World {
	return []World{
		{Name: "a driver", Provider: node.Socket, Deadline: true, Driver: true, Fine: true,
			Left: Faults{KubeletDies: 1, Crashes: 1}},
		{Name: "an edited annotation", Provider: node.Socket, Deadline: true, Left: Faults{Edits: 2, Crashes: 1}},
		{Name: "an edited annotation, no deadline", Provider: node.Socket, Left: Faults{Edits: 1, KubeletDies: 1}},
		{Name: "a provider that errs once", Provider: node.Socket, Deadline: true,
			Left: Faults{Errs: 1, KubeletDies: 1, KubeletReturns: 1}},
		{Name: "a late watch", Provider: node.Socket, Deadline: true,
			Left: Faults{Stalls: 1, KubeletDies: 1, KubeletReturns: 1}},
		{Name: "a late watch, a stripped finalizer", Provider: node.Socket, Deadline: true, Without: [pods]bool{db: true},
			Left: Faults{Stalls: 1, Strips: 1, Registers: 1}},
		{Name: "a former leader", Provider: node.Socket, Deadline: true,
			Left: Faults{LateWrites: 1, KubeletDies: 1, KubeletReturns: 1}},
		{Name: "a former leader, an edited annotation", Provider: node.Socket, Deadline: true,
			Left: Faults{LateWrites: 1, Edits: 1}},
		{Name: "a former leader, a Node of the same name", Provider: node.Socket, Deadline: true,
			Without: [pods]bool{db: true}, Left: Faults{LateWrites: 1, Strips: 1, Registers: 1}},
		{Name: "two nodes, one budget", Provider: node.NoProvider, Deadline: true, Two: true, Shared: true,
			Left: Faults{Crashes: 1}},
		{Name: "two nodes, one budget, one disk", Provider: node.Socket, Deadline: true, Two: true},
		{Name: "two nodes, one budget, one disk, no deadline", Provider: node.Socket, Two: true,
			Left: Faults{KubeletDies: 1}},
		{Name: "two nodes, one budget, one disk, manual", Provider: node.Manual, Deadline: true, Two: true,
			Left: Faults{PowersOff: 1, AdminTaints: 1}, Waits: []node.Reason{node.AwaitingPowerOff}},
		{Name: "two nodes, one disk", Provider: node.Socket, Deadline: true, Two: true,
			Without: [pods]bool{app: true, third: true}, Left: Faults{KubeletDies: 1, Stalls: 1}},
		{Name: "two nodes, one disk, a former leader", Provider: node.Socket, Deadline: true, Two: true,
			Without: [pods]bool{app: true, third: true}, Left: Faults{LateWrites: 1, KubeletDies: 1}},
	}
}

// Deep are the largest worlds: two nodes, three pods of one budget, one disk, and a disturbance.
func Deep() []World {
	with := func(name string, left Faults) World {
		return World{Name: "two nodes, " + name, Provider: node.Socket, Deadline: true, Two: true, Left: left}
	}
	return []World{with("a kubelet that dies", Faults{KubeletDies: 1}), with("a crash", Faults{Crashes: 1}),
		with("an edited annotation", Faults{Edits: 1}), with("a late watch", Faults{Stalls: 1}),
		with("a former leader", Faults{LateWrites: 1})}
}
