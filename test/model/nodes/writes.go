package nodes

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// lead adds what the leader may do next.
func (w World) lead(s *State, add adder) {
	for n := range w.deleted() {
		seen := s.Leader.View.Nodes[n]
		if !seen.Exists {
			continue
		}
		d := w.decide(s, n)
		about := Write{Sent: true, Node: uint8(n), Seen: seen, Proven: w.proof(s, n) == node.Given,
			Deadline: s.Leader.Memory[n].Obeyed}
		w.write(d, about, add)
		if !seen.Deleting || !seen.Protected {
			continue
		}
		if w.Provider == node.Socket {
			w.ask(n, add)
		}
		if seen.Begun {
			w.restore(about, add)
			w.endPods(s, about, add)
		}
	}
}

// write adds the step of the node.
func (w World) write(d node.Decision, about Write, add adder) {
	n := int(about.Node)
	switch about.Action = d.Action; d.Action {
	case node.Wait, node.Confirm, node.Clean, node.Abandon: // nothing is written
		return
	case node.Stop:
		add(false, fmt.Sprintf("node %d: %v, and the provider errs", n, d), func(s *State) {
			if w.mayActOn(s, about) {
				s.err(n)
			}
		})
	default:
	}
	w.send(fmt.Sprintf("node %d: %v", n, d), about, add)
}

// restore adds the write of the deadline that somebody changed.
func (w World) restore(about Write, add adder) {
	if about.Deadline != 0 && about.Seen.Deadline != about.Deadline {
		about.Action = node.Taint
		w.send(fmt.Sprintf("node %d: the deadline is written back", about.Node), about, add)
	}
}

// send adds a request of the leader. Or its process leads no longer: the request takes effect later, and the next
// process has begun.
func (w World) send(says string, sent Write, add adder) {
	add(true, says, func(s *State) {
		before := s.Nodes[sent.Node]
		w.carryOut(s, sent, &s.Leader)
		if now := s.Nodes[sent.Node]; now != before { // the answer shows it, however late the watch is
			s.Leader.View.Nodes[sent.Node] = now
		}
	})
	add(false, says+", late", func(s *State) {
		if s.Left.LateWrites > 0 && !s.Late.Sent {
			s.Left.LateWrites--
			s.Late = sent
			s.begin()
		}
	})
}

// carryOut carries out a request if its guards hold. The process that sent it hears the answer.
func (w World) carryOut(s *State, sent Write, by *Leader) {
	if sent.PodAction != pod.Leave {
		w.end(s, sent, by)
		return
	}
	n := int(sent.Node)
	now, m := &s.Nodes[n], &by.Memory[n]
	asSeen := *now == sent.Seen // the version
	switch sent.Action {
	case node.Protect:
		now.Protected = now.Protected || asSeen
	case node.Taint:
		if asSeen {
			now.Begun, now.Deadline = true, sent.Deadline
		}
	case node.Unmark:
		if asSeen {
			now.Marked, m.Answered, m.Answers = false, node.Running, 0
		}
	case node.Stop, node.DeleteInstance:
		w.turnOff(s, sent, m)
	case node.MarkOutOfService:
		if w.mayActOn(s, sent) && w.silent(s, n) {
			now.Marked = true
			s.Broken |= Untouched.broken(!now.Begun)
		}
	case node.Release, node.HandOver:
		if w.mayActOn(s, sent) && w.stillOff(s, sent) {
			w.judgeRelease(s, n, sent.Action)
			now.Protected = false
		}
	default:
	}
}

// mayActOn reports whether a live read shows the Node that the request is about.
func (w World) mayActOn(s *State, sent Write) bool {
	now := s.Nodes[sent.Node]
	same := now.Exists && now.Protected && now.Deleting == sent.Seen.Deleting
	return same && (now.Again == sent.Seen.Again || w.UIDUnread) || w.Unread
}

// silent reports whether a live read of the Lease shows no renewal.
func (w World) silent(s *State, n int) bool { return w.LeaseUnread || !s.renews(n) }

// stillOff reports whether nothing speaks against the proof that the request rests on.
func (w World) stillOff(s *State, sent Write) bool {
	return !sent.Proven || w.silent(s, int(sent.Node))
}

// turnOff has the provider stop the machine, or delete it if a live list shows no attachment.
func (w World) turnOff(s *State, sent Write, m *Memory) {
	n, deletes := int(sent.Node), sent.Action == node.DeleteInstance
	attached := s.Disk.on(n) && !w.Unlisted
	if !w.mayActOn(s, sent) || deletes && (attached || !w.stillOff(s, sent)) {
		return
	}
	machine, now := &s.Machines[n], s.Nodes[n]
	s.Broken |= Untouched.broken(machine.Power == On && (!now.Deleting || !now.Begun))
	switch {
	case deletes || w.StopDeletes:
		s.Broken |= DiskLost.broken(s.Disk.on(n))
		machine.stop(Gone)
		m.hear(node.Gone)
		m.Deleted = true
	case machine.Power == Gone:
		m.hear(node.Gone)
	default:
		if !machine.Lying {
			machine.stop(Off)
		}
		m.hear(node.Off)
	}
}

// hear notes an answer of the provider.
func (m *Memory) hear(answer node.Instance) {
	switch {
	case answer == node.Running:
		m.Answered, m.Answers = answer, 0
	case answer != m.Answered:
		m.Answered, m.Answers = answer, 1
	case m.Answers < 2:
		m.Answers++
	}
}

// ask adds a question to the provider.
func (w World) ask(n int, add adder) {
	add(true, fmt.Sprintf("the leader asks the provider about machine %d", n), func(s *State) {
		m, machine := &s.Leader.Memory[n], s.Machines[n]
		switch {
		case w.Unknown, machine.Power == Gone && m.Answered == node.Unknown:
			m.hear(node.Unseen)
		case machine.Power == Gone:
			m.hear(node.Gone)
		case machine.Power == Off || machine.Lying && m.Answered == node.Off:
			m.hear(node.Off)
		default:
			m.hear(node.Running)
		}
	})
	add(false, fmt.Sprintf("the leader asks about machine %d, and the provider errs", n), func(s *State) { s.err(n) })
}

// err is one wrong answer of the provider.
func (s *State) err(n int) {
	if s.Left.Errs > 0 && s.Machines[n].Power == On {
		s.Left.Errs--
		s.Leader.Memory[n].hear(node.Off)
	}
}
