package nodes

import "github.com/exeunt-io/exeunt/pkg/termination/node"

// step adds a step if the state changes.
type step struct {
	says  string
	after State
	free  bool
}

// others returns what everybody else may do: free steps happen sooner or later, faults and users may not.
func (w World) others(s State) []step {
	var steps []step
	add := func(free bool, says string, change func(*State)) {
		after := s
		if change(&after); after != s {
			steps = append(steps, step{says, after, free})
		}
	}
	w.time(s, add)
	w.kubelet(s, add)
	w.disk(s, add)
	w.podgc(s, add)
	w.faults(s, add)
	w.users(s, add)
	return steps
}

type adder func(free bool, says string, change func(*State))

func (w World) time(s State, add adder) {
	add(w.Deadline, "time passes", func(after *State) {
		if s.Begun && s.Phase < AtE && w.Deadline {
			after.Phase++
		}
	})
}

// kubelet ends processes, unmounts, and removes pods, while it lives.
func (w World) kubelet(s State, add adder) {
	if !s.renews() {
		return
	}
	for i, p := range s.Pods {
		add(true, "the kubelet ends a container", func(after *State) {
			if p.Exists && p.Terminating && p.Runs && (!p.Long || s.Phase == AtE) {
				after.Pods[i].Runs = false
			}
		})
		add(true, "the kubelet lets a pod go", func(after *State) {
			if p.Exists && p.Terminating && !p.Runs && (i != db || !s.Mounted) {
				after.Pods[i].Exists = p.Held
			}
		})
	}
	add(true, "the kubelet unmounts the disk", func(after *State) {
		if !s.Pods[db].Runs && s.Pods[db].Terminating {
			after.Mounted = false
		}
	})
}

// outOfService reports whether the Node has the taint.
func (s State) outOfService() bool { return s.Exists && (s.Marked || s.AdminMarked) }

// disk is what becomes of the disk: the attach-detach controller, the driver, and the replacement.
func (w World) disk(s State, add adder) {
	add(!w.NoDetach, "the attach-detach controller begins to detach", func(after *State) {
		if s.Disk == Attached && !s.Pods[db].Exists && (!s.Mounted || s.outOfService()) {
			after.Disk = Detaching
		}
	})
	add(!w.DetachFails, "the disk is detached", func(after *State) {
		if s.Disk == Detaching {
			after.Disk = Detached
		}
	})
	add(true, "the replacement writes to the disk", func(after *State) {
		if s.Disk == Detached && !s.Pods[db].Exists {
			after.Moved = true
		}
	})
}

// podgc removes the pods of a Node that is gone or out of service.
func (w World) podgc(s State, add adder) {
	add(true, "the API server removes the Node", func(after *State) {
		if s.Deleting && !s.Protected {
			after.Exists = false
		}
	})
	for i, p := range s.Pods {
		add(true, "podgc removes a pod", func(after *State) {
			if p.Exists && (!s.Exists || s.outOfService() && p.Terminating && !s.renews()) {
				after.Pods[i].Exists, after.Pods[i].Terminating = p.Held, true
			}
		})
	}
}

func (w World) faults(s State, add adder) {
	add(false, "the kubelet dies", func(after *State) {
		if s.Kubelet && s.Left.KubeletDies > 0 {
			after.Kubelet, after.Left.KubeletDies = false, s.Left.KubeletDies-1
		}
	})
	add(false, "the kubelet returns", func(after *State) {
		if !s.Kubelet && s.Power == On && s.Left.KubeletReturns > 0 {
			after.Left.KubeletReturns--
			after.renew()
		}
	})
	add(false, "the provider begins to lie", func(after *State) {
		if s.Left.Lies > 0 {
			after.Lying, after.Left.Lies = true, s.Left.Lies-1
		}
	})
	add(true, "the provider ends to lie", func(after *State) { after.Lying = false })
	w.machine(s, add)
}

// machine is what happens to the machine, and to node-terminator.
func (w World) machine(s State, add adder) {
	add(false, "the machine comes back", func(after *State) {
		if s.Power == Off && s.Left.ComesBack > 0 {
			after.Power, after.Left.ComesBack = On, s.Left.ComesBack-1
			after.renew()
			for i, p := range s.Pods {
				after.Pods[i].Runs = p.Exists && !p.Terminating && (i != db || s.Disk == Attached)
			}
			after.Mounted = after.Pods[db].Runs
		}
	})
	add(false, "the machine is taken away", func(after *State) {
		if s.Power == On && s.Left.Spot > 0 {
			after.Left.Spot--
			after.stop(Gone)
		}
	})
	add(false, "node-terminator crashes", func(after *State) {
		if s.Left.Crashes > 0 {
			after.Answered, after.Answers, after.Deleted, after.Left.Crashes = node.Unknown, 0, false, s.Left.Crashes-1
			if s.Answered != node.Unknown && s.Answered != node.Unseen {
				after.Answered = node.Running // the annotation exeunt.io/instance says that it was seen
			}
		}
	})
}

func (w World) users(s State, add adder) {
	add(false, "a user deletes the Node", func(after *State) { after.Deleting = true })
	add(false, "a replacement is Ready, and the budget has room", func(after *State) {
		after.Room = true
		for i := range after.Pods {
			after.Pods[i].Answer = 0
		}
	})
	add(false, "an administrator turns the machine off", func(after *State) {
		if s.Power == On && s.Left.PowersOff > 0 {
			after.Left.PowersOff--
			after.stop(Off)
		}
	})
	add(false, "an administrator says that the machine is off", func(after *State) {
		if s.Exists && s.Left.AdminTaints > 0 && (s.Power != On || w.AdminErrs) {
			after.AdminMarked, after.Left.AdminTaints = true, s.Left.AdminTaints-1
		}
	})
	add(false, "a user strips our finalizer", func(after *State) {
		if s.Protected && s.Deleting && s.Left.Strips > 0 {
			after.Protected, after.Left.Strips = false, s.Left.Strips-1
		}
	})
}
