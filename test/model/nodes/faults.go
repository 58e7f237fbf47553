package nodes

import (
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// take takes one of what is left.
func take(left *uint8, may bool) bool {
	if !may || *left == 0 {
		return false
	}
	*left--
	return true
}

// faults adds what may go wrong with the machines that are in play, and with the leader.
func (w World) faults(add adder) {
	for n := range w.deleted() {
		add(false, fmt.Sprintf("kubelet %d dies", n), func(s *State) {
			if m := &s.Machines[n]; take(&s.Left.KubeletDies, m.Kubelet) {
				m.Kubelet = false
			}
		})
		add(false, fmt.Sprintf("kubelet %d returns", n), func(s *State) {
			if m := s.Machines[n]; take(&s.Left.KubeletReturns, !m.Kubelet && m.Power == On) {
				s.renew(n)
			}
		})
		w.machine(n, add)
	}
	w.leader(add)
}

// machine is what happens to a machine, and to what its provider says.
func (w World) machine(n int, add adder) {
	add(false, fmt.Sprintf("the provider begins to lie about machine %d", n), func(s *State) {
		if m := &s.Machines[n]; take(&s.Left.Lies, !m.Lying) {
			m.Lying = true
		}
	})
	add(true, fmt.Sprintf("the provider ends to lie about machine %d", n), func(s *State) { s.Machines[n].Lying = false })
	add(false, fmt.Sprintf("machine %d comes back", n), func(s *State) {
		m := &s.Machines[n]
		if !take(&s.Left.ComesBack, m.Power == Off) {
			return
		}
		m.Power = On
		s.renew(n)
		for i, p := range s.Pods {
			m.Runs[i] = p.isOn(n) && p.Ends == 0 && (i != db || w.Shared || s.Disk == Disk{On: uint8(n)})
		}
		m.Mounted = m.Runs[db]
	})
	add(false, fmt.Sprintf("machine %d is taken away", n), func(s *State) {
		if m := &s.Machines[n]; take(&s.Left.Spot, m.Power == On) {
			m.stop(Gone)
		}
	})
}

// leader is what happens to the process that leads, and to what it sees.
func (w World) leader(add adder) {
	add(false, "the leader crashes", func(s *State) {
		if take(&s.Left.Crashes, true) {
			s.begin()
		}
	})
	add(false, "a request of a former leader takes effect", func(s *State) {
		if sent := s.Late; sent.Sent {
			s.Late = Write{}
			w.carryOut(s, sent, &Leader{})
		}
	})
	add(true, "a late watch catches up", func(s *State) { s.Leader.Late = None })
	for i, what := range []string{"Nodes", "pods", "attachments"} {
		add(false, "the watch of "+what+" is late", func(s *State) {
			if take(&s.Left.Stalls, s.Leader.Late == None) {
				s.Leader.Late = Nodes + Watch(i)
			}
		})
	}
}

// users adds what users and administrators do.
func (w World) users(add adder) {
	for n := range w.deleted() {
		add(false, fmt.Sprintf("a user deletes Node %d", n), func(s *State) { s.Nodes[n].Deleting = s.Nodes[n].Exists })
		add(false, fmt.Sprintf("an administrator turns machine %d off", n), func(s *State) {
			if m := &s.Machines[n]; take(&s.Left.PowersOff, m.Power == On) {
				m.stop(Off)
			}
		})
		add(false, fmt.Sprintf("an administrator says that machine %d is off", n), func(s *State) {
			now := &s.Nodes[n]
			may := now.Exists && !now.AdminMarked && (s.Machines[n].Power != On || w.AdminErrs)
			if take(&s.Left.AdminTaints, may) {
				now.AdminMarked = true
			}
		})
		add(false, fmt.Sprintf("a user strips the finalizer of Node %d", n), func(s *State) {
			if now := &s.Nodes[n]; take(&s.Left.Strips, now.Protected && now.Deleting) {
				now.Protected = false
			}
		})
		add(false, fmt.Sprintf("kubelet %d registers a Node of the same name", n), func(s *State) {
			if take(&s.Left.Registers, !s.Nodes[n].Exists && s.Machines[n].Power == On) {
				w.register(s, n)
			}
		})
		w.edits(n, add)
	}
	w.podUsers(add)
}

// register makes another Node of the name. Its time begins anew, so that of its pods does, too.
func (w World) register(s *State, n int) {
	now := &s.Nodes[n]
	*now = Node{Exists: true, Again: !now.Again, Beat: now.Beat}
	s.Age[n], s.Due[n], s.Machines[n].Kubelet = 0, w.due(), true
	for i := range s.Pods {
		if p := &s.Pods[i]; p.isOn(n) {
			p.Ends = min(p.Ends, w.grace(i))
		}
	}
}

// edits adds what a user writes into the annotation. The deadline may only move earlier.
func (w World) edits(n int, add adder) {
	for _, text := range []Second{0, unparsable, earlier, later} {
		add(false, fmt.Sprintf("a user edits the annotation of Node %d: %q", n, text.text()), func(s *State) {
			now := &s.Nodes[n]
			if !take(&s.Left.Edits, now.Exists && now.Deleting && now.Deadline != text) {
				return
			}
			now.Deadline = text
			if text > unparsable && (s.Due[n] == 0 || text < s.Due[n]) {
				s.Due[n] = text
			}
		})
	}
}

// podUsers adds what users do to pods.
func (w World) podUsers(add adder) {
	for _, i := range []int{app, third} {
		add(false, fmt.Sprintf("a replacement of pod %d is Ready", i), func(s *State) {
			p := s.Pods[i]
			s.Replaced[i] = s.Replaced[i] || w.budgeted(i) && (!p.Exists || p.Ends != 0)
		})
	}
	add(false, "a user deletes the db", func(s *State) {
		p := &s.Pods[db]
		if take(&s.Left.DeletesPod, p.Exists && p.Ends == 0 && s.Nodes[p.On].Begun) {
			p.Ends = w.now(s, int(p.On)) + w.grace(db)
		}
	})
}

// seen reports whether the provider said something of the machine.
func (m Memory) seen() bool { return m.Answered != node.Unknown && m.Answered != node.Unseen }
