package nodes

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// endPods adds the requests for the pods of the node.
func (w World) endPods(s *State, about Write, add adder) {
	n := int(about.Node)
	for i, judged := range w.judge(s, n) {
		seen := s.Leader.View.Pods[i]
		if !seen.isOn(n) || judged.Action == pod.Wait || judged.Action == pod.Leave {
			continue
		}
		about.Pod, about.SeenPod, about.PodAction, about.Grace = uint8(i), seen, judged.Action, judged.given
		w.send(fmt.Sprintf("node %d, pod %d: %v", n, i, judged.Decision), about, add)
	}
}

// end carries out a request for a pod. Its UID is a precondition.
func (w World) end(s *State, sent Write, by *Leader) {
	i, n := int(sent.Pod), int(sent.Node)
	p := &s.Pods[i]
	if !p.isOn(n) || p.Again != sent.SeenPod.Again {
		return
	}
	var broken Rules
	switch sent.PodAction {
	case pod.Evict:
		if w.budgeted(i) && p.Ends == 0 && !w.room(s) {
			by.Heard[i] = pod.Blocked
			return
		}
		broken = w.terminate(s, n, i, sent.Grace)
	case pod.Delete:
		broken = BudgetBroken.broken(p.Ends == 0 && !w.mayForce(s, n, i)) | w.terminate(s, n, i, sent.Grace)
	case pod.Shorten:
		broken = w.terminate(s, n, i, 1)
	case pod.Remove:
		if w.mayActOn(s, sent) && w.silent(s, n) {
			s.Broken |= RunningPodRemoved.broken(s.Machines[n].Runs[i])
			p.Ends = max(p.Ends, 1)
			p.leave()
		}
	default:
	}
	if s.Nodes[n].Again == sent.Seen.Again { // the time of a Node that was stripped says nothing of the next one
		s.Broken |= broken
	}
}

// terminate deletes the pod with a grace period, and returns what is wrong with that. A second deletion can only shorten
// it.
func (w World) terminate(s *State, n, i int, grace Second) Rules {
	p, now := &s.Pods[i], w.now(s, n)
	ends := now + grace
	if p.Ends != 0 {
		ends = min(ends, p.Ends)
	}
	broken := GraceCut.broken(ends < w.deserved(s, n, i)) |
		DriverFirst.broken(w.isDriver(i) && p.Ends == 0 && w.driverServes(s, n))
	p.Short = p.Short || p.Ends != ends && grace == 1
	p.Ends = ends
	return broken
}

// mayForce reports whether L of the pod has come, by the earliest deadline that somebody wrote.
func (w World) mayForce(s *State, n, i int) bool {
	t, now := times(s.Due[n], true), w.now(s, n).at()
	if w.isDriver(i) {
		return deadline.Due(t.GraceEnds, now)
	}
	return deadline.Due(t.Forced(w.grace(i).length()), now)
}

// deserved is until when the pod may run at least if it is deleted now: for its whole grace period, or until P. If others
// have deleted it before, its grace period is not cut before P - 5 s.
func (w World) deserved(s *State, n, i int) Second {
	p, t, ends := s.Pods[i], times(s.Due[n], true), w.now(s, n)+w.grace(i)
	last := t.GraceEnds
	if p.Ends != 0 {
		ends, last = p.Ends, last.Add(-deadline.Shortening)
	}
	if t.None() || !last.Before(ends.at()) {
		return ends
	}
	return Second(max(0, last.Sub(requested).Seconds()))
}

// driverServes reports whether P has not come, and the kubelet ends pods on whose volumes the driver works.
func (w World) driverServes(s *State, n int) bool {
	m, due := s.Machines[n], deadline.Due(times(s.Due[n], true).GraceEnds, w.now(s, n).at())
	return s.renews(n) && !due && (m.Runs[app] || m.Runs[db] || m.Mounted)
}
