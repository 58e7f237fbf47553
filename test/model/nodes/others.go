package nodes

import "fmt"

// adder adds a step if it changes the state. Free steps happen sooner or later; faults and users may not.
type adder func(free bool, says string, change func(*State))

// others adds what everybody else does.
func (w World) others(add adder) {
	for n := range nodes {
		w.time(n, add)
		w.kubelet(n, add)
		add(true, fmt.Sprintf("the API server removes Node %d", n), func(s *State) {
			if now := s.Nodes[n]; now.Exists && now.Deleting && !now.Protected {
				s.Nodes[n] = Node{Again: now.Again, Beat: now.Beat}
			}
		})
	}
	w.disk(add)
	w.podgc(add)
}

// time passes for each node by itself, so that each can be ahead of the other one. A kubelet that lives ends a pod in
// time.
func (w World) time(n int, add adder) {
	add(true, fmt.Sprintf("time passes for node %d", n), func(s *State) {
		if now := s.Nodes[n]; now.Deleting && now.Begun && int(s.Age[n]) < len(w.instants())-1 && !w.kubeletDue(s, n) {
			s.Age[n]++
		}
	})
}

// kubeletDue reports whether the kubelet has to end or remove a pod before the next instant.
func (w World) kubeletDue(s *State, n int) bool {
	m := s.Machines[n]
	for i, p := range s.Pods {
		mounted := i == db && m.Mounted && w.Driver && !m.Runs[third]
		if p.isOn(n) && w.graceEnds(s, p) && (m.Runs[i] || !p.Held && !mounted) {
			return s.renews(n)
		}
	}
	return false
}

// graceEnds reports whether the grace period of the pod ends before the next instant.
func (w World) graceEnds(s *State, p Pod) bool {
	next := int(s.Age[p.On]) + 1
	return p.Ends != 0 && (next == len(w.instants()) || p.Ends <= w.instants()[next])
}

// kubelet ends processes, unmounts, and removes pods, while it lives.
func (w World) kubelet(n int, add adder) {
	for i := range pods {
		add(true, fmt.Sprintf("the kubelet ends pod %d on machine %d", i, n), func(s *State) {
			if s.renews(n) && w.mayEnd(s, n, i) {
				s.Machines[n].Runs[i], s.Pods[i].Ended = false, s.Pods[i].Held
			}
		})
		add(true, fmt.Sprintf("the kubelet lets pod %d on machine %d go", i, n), func(s *State) {
			if s.renews(n) && s.hasEnded(n, i) {
				s.Pods[i].leave()
			}
		})
	}
	add(true, fmt.Sprintf("the kubelet unmounts the disk from machine %d", n), func(s *State) {
		m := &s.Machines[n]
		unused := !m.Runs[db] && (!s.Pods[db].isOn(n) || s.Pods[db].Ends != 0)
		if s.renews(n) && unused && (!w.Driver || m.Runs[third]) {
			m.Mounted = false
		}
	})
}

// mayEnd reports whether the process of a pod that was deleted may end. One that ignores SIGTERM ends with its grace period.
func (w World) mayEnd(s *State, n, i int) bool {
	p := s.Pods[i]
	stops := p.Ends != 0 && (!w.Long || i != db || w.graceEnds(s, p))
	return s.Machines[n].Runs[i] && (!p.isOn(n) || stops)
}

// hasEnded reports whether a pod that was deleted has ended, and its disk is unmounted.
func (s *State) hasEnded(n, i int) bool {
	p, m := s.Pods[i], s.Machines[n]
	return p.isOn(n) && p.Ends != 0 && !m.Runs[i] && (i != db || !m.Mounted)
}

// disk is what becomes of the disk: the attach-detach controller, the driver, and the replacement of the db.
func (w World) disk(add adder) {
	add(!w.NoDetach, "the attach-detach controller begins to detach", func(s *State) {
		n := int(s.Disk.On)
		used := s.Pods[db].isOn(n) || s.Machines[n].Mounted && !s.Nodes[n].outOfService()
		if s.Disk.State == Attached && !used {
			s.Disk.State = Detaching
		}
	})
	add(!w.DetachFails, "the disk is detached", func(s *State) {
		if s.Disk.State == Detaching {
			s.Disk.State = Detached
		}
	})
	other := nodes - 1
	add(true, "the replacement writes to the disk", func(s *State) {
		p, m, now := &s.Pods[db], &s.Machines[other], s.Nodes[other]
		free := !p.Exists && !p.Again && s.Disk.State == Detached && now.Exists && !now.Begun
		if !w.has(db) || !free || !s.renews(other) {
			return
		}
		*p, m.Runs[db], m.Mounted = Pod{Exists: true, Again: true, On: uint8(other)}, true, true
		if !w.Shared {
			s.Disk = Disk{On: uint8(other)}
		}
	})
}

// podgc removes the pods of a Node that is gone or out of service.
func (w World) podgc(add adder) {
	for i := range pods {
		add(true, fmt.Sprintf("podgc removes pod %d", i), func(s *State) {
			p := &s.Pods[i]
			now, silent := s.Nodes[p.On], !s.renews(int(p.On))
			if p.Exists && (!now.Exists || now.outOfService() && p.Ends != 0 && silent) {
				p.Ends = max(p.Ends, 1)
				p.leave()
			}
		})
	}
}
