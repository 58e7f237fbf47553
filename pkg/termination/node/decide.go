package node

// Decide returns the next step for one node. It is total and pure. The machine is stopped by one case only, and deleted
// by two.
func Decide(s State) Decision {
	switch {
	case !s.Begun && (s.Owner == Others || s.Owner == Unreadable):
		return decideOthers(s)
	case !s.Deleting:
		return decideLive(s)
	case !s.Protected && s.Begun:
		return Decision{Abandon, FinalizerStripped}
	case !s.Protected:
		return Decision{Wait, NotServed}
	case s.Owner == Unserved && !s.Begun:
		return Decision{Release, NotServed}
	case !s.Begun && s.Provider == NoProvider && s.Silent:
		return Decision{HandOver, KubeletSilent}
	case !s.Begun: // no pod may be bound to the node from here on, also if its machine is off
		return Decision{Taint, DeletionRequested}
	}
	return decideBegun(s)
}

// decideBegun ends a node that drains.
func decideBegun(s State) Decision {
	switch {
	case s.Proof == Revoked && s.Marked:
		return Decision{Unmark, InstanceCameBack}
	case s.Proof == Given:
		return decideOff(s)
	case s.drained() && s.Volumes == Detached && s.Pods != Stuck:
		return decideDrained(s)
	case s.Proof == Begun:
		return Decision{Confirm, ProofIncomplete}
	case s.Ended, s.drained():
		return decideEnded(s)
	case s.Pods == Awaited:
		return Decision{Wait, Draining}
	case s.Volumes != Detached:
		return Decision{Wait, AwaitingVolumeDetachment}
	}
	return Decision{Wait, Settling}
}

// decideOthers leaves a node to its owner. A finalizer that we added before we knew of the owner would keep the node for
// ever. A termination that has begun goes on: whoever writes a claim cannot keep a machine running.
func decideOthers(s State) Decision {
	switch {
	case s.Owner == Unreadable:
		return Decision{Wait, ClaimsUnreadable}
	case s.Protected:
		return Decision{Release, OwnedByOthers}
	}
	return Decision{Wait, OwnedByOthers}
}

func decideLive(s State) Decision {
	switch {
	case s.Owner == Ours && !s.Protected:
		return Decision{Protect, LabelSet}
	case s.Owner == Unserved && s.Protected:
		return Decision{Release, LabelRemoved}
	case s.Owner == Ours:
		return Decision{Wait, NotDeleted}
	}
	return Decision{Wait, NotServed}
}

// decideDrained ends a node on which no container of a pod runs, but for those that go with the node, and to which no
// volume is attached.
func decideDrained(s State) Decision {
	switch {
	case s.Provider == NoProvider:
		return Decision{HandOver, Drained}
	case s.Provider == Manual, s.unidentified():
		return Decision{Release, MachineRuns}
	case s.Instance == Gone, s.Instance == Off && (s.Deleted || s.NoDelete):
		return Decision{Release, Drained}
	case s.NoDelete:
		return Decision{Release, MachineRuns}
	case s.Instance == Unknown && s.Ended && !s.NoStop: // no answer of the provider delays the end of the machine
		return Decision{Stop, DeadlineReached}
	case s.Instance == Unknown:
		return Decision{Wait, InstanceUnreadable}
	case s.Deleted:
		return Decision{Wait, InstanceStops}
	}
	return Decision{DeleteInstance, Drained}
}

// decideEnded ends the machine of a node that may still write to its volumes. Its pods and its attachments stay until
// the proof: a second node would write to the same disk. A volume needs no attachment for that: a pod that is stuck may
// write to a network file system, and its replacement would begin once the Node is gone.
func decideEnded(s State) Decision {
	switch {
	case s.Provider == NoProvider:
		return Decision{HandOver, DeadlineReached}
	case s.Provider == Manual:
		return Decision{Wait, AwaitingPowerOff}
	case s.unidentified():
		return Decision{Wait, s.Instance.reason()}
	case s.Instance == Stopping:
		return Decision{Wait, InstanceStops}
	case !s.NoStop:
		return Decision{Stop, DeadlineReached}
	case s.Volumes != Detached:
		return Decision{Wait, DisksAttached}
	case s.Deleted:
		return Decision{Wait, InstanceStops}
	case s.NoDelete:
		return Decision{Wait, AwaitingPowerOff}
	}
	return Decision{DeleteInstance, DeadlineReached}
}

// decideOff frees what the machine held. The finalizer stays until each detachment began: without the Node the
// attach-detach controller would wait for six minutes.
func decideOff(s State) Decision {
	switch {
	case s.Pods == Awaited, s.Pods == Stuck, s.Pods == Finished:
		return Decision{Clean, MachineOff}
	case !s.Marked && (s.Volumes == Attached || s.Volumes == Stranded):
		return Decision{MarkOutOfService, MachineOff}
	case s.Volumes == Attached, s.Volumes == Stranded:
		return Decision{Wait, DetachNotStarted}
	case s.Provider != Socket, s.Instance == Gone:
		return Decision{Release, MachineOff}
	case s.Volumes == Detaching:
		return Decision{Wait, AwaitingVolumeDetachment}
	case s.Deleted, s.NoDelete, s.unidentified():
		return Decision{Release, MachineOff}
	}
	return Decision{DeleteInstance, MachineOff}
}

func (i Instance) reason() Reason {
	switch i {
	case Foreign:
		return InstanceForeign
	case Shared:
		return InstanceShared
	default:
		return InstanceUnknown
	}
}
