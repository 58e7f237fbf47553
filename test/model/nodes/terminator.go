package nodes

import (
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// proof is what node-terminator takes for proven.
func (w World) proof(s State) node.Proof {
	if w.Prove != nil {
		return w.Prove(w, s)
	}
	return w.prove(s)
}

func (w World) decide(s State) node.Decision {
	if w.Decide != nil {
		return w.Decide(w.nodeState(s))
	}
	return node.Decide(w.nodeState(s))
}

func (w World) prove(s State) node.Proof {
	claimed := s.Answered == node.Off || s.Answered == node.Gone
	enough := s.Answers >= 2
	if w.Provider == node.Manual {
		claimed, enough = s.AdminMarked, true
	}
	switch {
	case s.Marked && s.renews():
		return node.Revoked
	case !claimed:
		return node.NoProof
	case enough && !s.renews():
		return node.Given
	}
	return node.Begun
}

// podState is what node-terminator knows of a pod.
func (w World) podState(s State, i int) pod.State {
	p := s.Pods[i]
	observed := pod.State{Answer: p.Answer, Volume: i == db && s.Disk != Detached}
	switch {
	case w.proof(s) == node.Given:
		observed.Moment = pod.Proven
	case s.Phase == AtL:
		observed.Moment = pod.FromL
	case s.Phase > AtL:
		observed.Moment = pod.FromShortening
	}
	switch {
	case p.Terminating && p.Held && !p.Runs:
		observed.End = pod.ContainersEnded
	case p.Terminating && !s.renews() && s.Phase == AtE:
		observed.End = pod.Overdue
	case p.Terminating && p.Long:
		observed.End = pod.BeyondP
	case p.Terminating:
		observed.End = pod.InTime
	}
	return observed
}

// nodeState is what node-terminator knows of the node.
func (w World) nodeState(s State) node.State {
	observed := node.State{Owner: node.Ours, Provider: w.Provider, Instance: s.Answered, Proof: w.proof(s), Deleting: s.Deleting,
		Protected: s.Protected, Begun: s.Begun, Silent: !s.renews(), Ended: s.Phase == AtE, Settled: true, NoStop: w.NoStop,
		Marked: s.Marked, Deleted: s.Deleted}
	awaitedDisk := false
	for i, p := range s.Pods {
		if !p.Exists {
			continue
		}
		switch d := pod.Decide(w.podState(s, i)); {
		case d.Action == pod.Remove && p.Held && p.Terminating:
			observed.Pods = max(observed.Pods, node.Kept)
		case d.Action == pod.Remove:
			observed.Pods = max(observed.Pods, node.Stuck)
		case d.Action == pod.Leave && d.Reason == pod.ForeignFinalizer:
			observed.Pods = max(observed.Pods, node.Finished)
		case d.Action == pod.Leave:
			observed.Pods = max(observed.Pods, node.Stuck)
		default:
			observed.Pods, awaitedDisk = node.Awaited, awaitedDisk || i == db
		}
	}
	observed.Volumes = volumes(s, awaitedDisk)
	return observed
}

func volumes(s State, awaited bool) node.Volumes {
	switch {
	case s.Disk == Detached:
		return node.Detached
	case s.Disk == Detaching:
		return node.Detaching
	case s.Pods[db].Exists && !awaited:
		return node.Stranded
	}
	return node.Attached
}

// terminate carries out the next step of node-terminator for the node.
func (w World) terminate(s State) (State, node.Decision, []string) {
	d := w.decide(s)
	var broken []string
	switch d.Action {
	case node.Protect:
		s.Protected = true
	case node.Taint:
		s.Begun = true
	case node.Stop:
		s.Answered, s.Answers = node.Off, 1
		if s.Lying {
			break
		}
		s.stop(Off)
	case node.Confirm:
		s = w.ask(s)
	case node.MarkOutOfService:
		s.Marked = true
	case node.Unmark:
		s.Marked, s.Answered, s.Answers = false, node.Running, 0
	case node.DeleteInstance:
		if s.Disk != Detached {
			broken = append(broken, DiskLost)
		}
		s.stop(Gone)
		s.Answered, s.Answers, s.Deleted = node.Gone, 1, true
	case node.Wait, node.Clean, node.Abandon: // pods are removed by their own decisions
	case node.Release, node.HandOver:
		broken = w.released(s, d.Action)
		s.Protected = false
	}
	return s, d, broken
}

// released returns what is wrong with the release of the Node.
func (w World) released(s State, action node.Action) []string {
	var broken []string
	if s.Disk == Attached && s.Power != On && w.Provider != node.NoProvider {
		broken = append(broken, ReleasedEarly)
	}
	if s.runs() && action == node.Release {
		broken = append(broken, RunningPodReleased)
	}
	return broken
}

// ask asks the provider.
func (w World) ask(s State) State {
	answer := node.Running
	switch {
	case w.Unknown, s.Power == Gone && s.Answered == node.Unknown:
		answer = node.Unseen
	case s.Power == Gone:
		answer = node.Gone
	case s.Power == Off || s.Lying && s.Answered == node.Off:
		answer = node.Off
	}
	switch {
	case answer != s.Answered:
		s.Answered, s.Answers = answer, 1
	case s.Answers < 2:
		s.Answers++
	}
	if answer == node.Running {
		s.Answers = 0
	}
	return s
}

// end carries out the next step of node-terminator for a pod.
func (w World) end(s State, i int) (State, pod.Decision, []string) {
	if !s.Begun || !s.Deleting || !s.Exists || !s.Protected {
		return s, pod.Decision{}, nil
	}
	d, p := pod.Decide(w.podState(s, i)), &s.Pods[i]
	var broken []string
	switch d.Action {
	case pod.Evict:
		if p.Answer = pod.Blocked; s.Room {
			p.Answer, p.Terminating, s.Room = pod.Untried, true, false
		}
	case pod.Delete:
		if s.Phase == Early {
			broken = append(broken, BudgetBroken)
		}
		p.Terminating = true
	case pod.Leave, pod.Wait:
	case pod.Shorten:
		p.Long = false
	case pod.Remove:
		if p.Runs {
			broken = append(broken, RunningPodRemoved)
		}
		p.Terminating = true
		p.Exists = p.Held
	}
	return s, d, broken
}
