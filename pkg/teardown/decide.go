package teardown

// Decide returns the next step of a teardown. It is total and pure. Objects are deleted by one case only, and nothing is
// written but after a live read: the cache may not show yet that a person has stopped the teardown.
func Decide(s State) Decision {
	next := decide(s)
	if next.Action != Wait && next.Action != End && !s.Confirmed {
		next.Action = Confirm
	}
	return next
}

func decide(s State) Decision {
	switch {
	case s.OtherCluster:
		// A DNS name moved to another cluster in the middle of a run. Nothing of that one is touched, not even a status.
		return Decision{NoPhase, End, OtherCluster}
	case s.Alive == Unread:
		return Decision{NoPhase, Wait, Unreadable}
	case s.Alive == Absent && s.Recorded:
		return Decision{Complete, End, Completed}
	case s.Alive == Absent:
		return Decision{NoPhase, End, NotCompleted}
	case !s.Deleting:
		return decideLive(s)
	case !s.Held && s.complete():
		return Decision{Complete, End, Completed} // a finalizer of others, such as that of the foreground deletion, is left
	}
	if reason := stopped(s); reason != "" {
		return decideStopped(s, reason)
	}
	if !s.Leading {
		return Decision{phaseOf(s), Wait, NotLeading}
	}
	next, prepared := prepare(s)
	switch {
	case !prepared:
		return next
	case !s.Started:
		return Decision{Preparing, Start, Starting}
	}
	return decideStarted(s)
}

// decideLive writes nothing but the status: a cluster that is armed and forgotten must live as before.
func decideLive(s State) Decision {
	switch {
	case s.Protected:
		return Decision{Protected, Wait, IsProtected}
	case s.Word == ExpiredWord:
		return Decision{Protected, Wait, Expired}
	case s.Word != ValidWord:
		return Decision{Protected, Wait, NotConfirmed}
	case s.Readiness == Unchecked:
		return Decision{Armed, Wait, Checking}
	case s.Readiness == Unready:
		return Decision{Armed, Wait, NotReady}
	}
	return Decision{Armed, Wait, AwaitingDeletion}
}

// stopped returns why nothing new is deleted, "" if nothing stops the teardown.
func stopped(s State) Reason {
	switch {
	case s.Undefined && !s.complete():
		// The deletion of a CRD sets a deletionTimestamp on Alive past every policy. No person requested a teardown.
		return DefinitionDeleted
	case !s.Held:
		return FinalizerStripped
	case s.Protected:
		return IsProtected
	case s.Word == ExpiredWord:
		return Expired
	case !s.permitted():
		return NotConfirmed
	case s.Restored:
		return Paused
	case !s.proven() && s.Readiness == Unready:
		return NotReady
	}
	return ""
}

// proven reports whether the teardown was started after all checks. A condition that was written by hand has no plan.
func (s State) proven() bool { return s.Started && s.Planned }

// left reports whether something is left to delete.
func (s State) left() bool { return s.Work == Ready || s.Work == Awaited }

// complete reports whether everything was gone, and nothing came back since.
func (s State) complete() bool { return s.Started && s.Recorded && !s.left() }

// decideStopped deletes nothing. Before Started the cluster stays, and needs its new volumes. After Started the freeze
// stays: without it the owners of deleted volumes would fill new, empty ones.
func decideStopped(s State, reason Reason) Decision {
	if !s.Started && s.Freeze != NoFreeze && s.Leading {
		return Decision{Stopped, Unfreeze, reason}
	}
	return Decision{Stopped, Wait, reason}
}

func phaseOf(s State) Phase {
	if s.Started {
		return TearingDown
	}
	return Preparing
}

// prepare returns the next step towards the start: the freeze, the plan and the kept volumes, in this order. What is
// listed before the freeze is in force is not all that there will be. After the start each may be missing again.
func prepare(s State) (next Decision, prepared bool) {
	phase := phaseOf(s)
	switch {
	case !s.proven() && s.Readiness == Unchecked:
		return Decision{phase, Wait, Checking}, false
	case s.Freeze == NoFreeze:
		return Decision{phase, WriteFreeze, FreezeMissing}, false
	case s.Freeze == Written:
		return Decision{phase, Wait, FreezePending}, false
	case !s.Planned && s.Work == Unlisted:
		return Decision{phase, Wait, Unreadable}, false
	case !s.Planned:
		return Decision{phase, SavePlan, Planning}, false
	case !s.Kept:
		return Decision{phase, Keep, Keeping}, false
	}
	return Decision{phase, Wait, Unreadable}, s.Work != Unlisted
}

// decideStarted deletes what is to be deleted.
func decideStarted(s State) Decision {
	switch {
	case s.left() && s.Recorded:
		// The record must not say Complete while something is left: an Alive that is gone would be taken for a success.
		return Decision{TearingDown, Record, Deleting}
	case s.Work == Ready:
		return Decision{TearingDown, Delete, Deleting}
	case s.Work == Awaited:
		return Decision{TearingDown, Wait, Remaining}
	case s.Work != Finished:
		return Decision{TearingDown, Recheck, Settling}
	case !s.Recorded:
		return Decision{Complete, Record, Completed}
	}
	return Decision{Complete, Release, Completed} // last: an Alive that is gone was complete
}
