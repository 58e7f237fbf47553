package nodes

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/test/model/explore"
)

// Rules are broken rules.
type Rules uint16

const (
	// TwoWriters: two machines write to one disk.
	TwoWriters Rules = 1 << iota
	// DiskLost: a machine is deleted while a disk is attached to it.
	DiskLost
	// BudgetBroken: a pod is deleted before L.
	BudgetBroken
	// GraceCut: a pod gets less of its grace period than until P.
	GraceCut
	// DriverFirst: the driver ends before P, and before the pods that it serves.
	DriverFirst
	// Untouched: a machine is turned off, or its disk detached, although nobody deleted its Node.
	Untouched
	// RunningPodRemoved: a pod is removed with the grace period 0 while its process runs.
	RunningPodRemoved
	// RunningPodReleased: the Node goes while a process of a pod runs, so that podgc frees the pod for another node.
	RunningPodReleased
	// ReleasedEarly: the Node of a machine that is off is released before the detachment of its disk begins.
	ReleasedEarly
	// NodeStuck: nothing happens any more, and the Node is there without a reason that somebody else can end.
	NodeStuck
	// PodStuck: the Node is gone, and a pod of it is there without a finalizer of others.
	PodStuck
)

var names = []string{"TwoWriters", "DiskLost", "BudgetBroken", "GraceCut", "DriverFirst", "Untouched",
	"RunningPodRemoved", "RunningPodReleased", "ReleasedEarly", "NodeStuck", "PodStuck"}

// String returns the name of the rule.
func (r Rules) String() string {
	for i, name := range names {
		if r == 1<<i {
			return name
		}
	}
	return fmt.Sprintf("Rules(%d)", r)
}

// broken returns the rule if it is broken, no rule otherwise.
func (r Rules) broken(is bool) Rules {
	if is {
		return r
	}
	return 0
}

// findings returns each broken rule.
func (r Rules) findings(says string, s State) []explore.Finding {
	var found []explore.Finding
	for i := range names {
		if rule := Rules(1 << i); r&rule != 0 {
			found = append(found, explore.Finding{Rule: rule.String(), Sentence: fmt.Sprintf("%s: %+v", says, s)})
		}
	}
	return found
}

// judgeRelease notes what is wrong with the release of the Node.
func (w World) judgeRelease(s *State, n int, action node.Action) {
	m := s.Machines[n]
	left := s.Disk.State == Attached && s.Disk.on(n)
	s.Broken |= ReleasedEarly.broken(left && m.Power != On && w.Provider != node.NoProvider) |
		RunningPodReleased.broken((m.Runs[app] || m.Runs[db] || m.Runs[third] && !w.Driver) && action == node.Release)
}

// twoWriters reports whether two machines write to the disk.
func (s *State) twoWriters() bool { return s.Machines[0].Runs[db] && s.Machines[1].Runs[db] }

// AtRest returns what is wrong with a state in which nothing happens any more.
func (w World) AtRest(s State, _ bool) []explore.Finding {
	var broken Rules
	for n := range w.deleted() {
		if now := s.Nodes[n]; now.Exists && now.Deleting && now.Protected {
			broken |= NodeStuck.broken(!w.mayWait(&s, n))
		}
	}
	for _, p := range s.Pods {
		broken |= PodStuck.broken(p.Exists && !p.Held && !s.Nodes[p.On].Exists)
	}
	return broken.findings("at rest", s)
}

// mayWait reports whether the node waits for somebody else.
func (w World) mayWait(s *State, n int) bool {
	d := w.decide(s, n)
	if d.Action != node.Wait {
		return false
	}
	for _, reason := range w.Waits {
		if d.Reason == reason {
			return true
		}
	}
	// Without a deadline, or before it, a node waits for a pod that a budget keeps.
	return (s.Due[n] == 0 || s.Due[n] > period) && d.Reason == node.Draining && w.blocked(s, n)
}

func (w World) blocked(s *State, n int) bool {
	for i, judged := range w.judge(s, n) {
		if s.Pods[i].isOn(n) && judged.Action == pod.Wait {
			return true
		}
	}
	return false
}
