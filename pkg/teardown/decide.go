package teardown

// Decide returns the next step of a teardown. It is total and pure. Objects are deleted by one case only.
func Decide(s State) Decision {
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
	}
	if reason := stopped(s); reason != "" {
		return decideStopped(s, reason)
	}
	if !s.Leading {
		return Decision{phaseOf(s), Wait, NotLeading}
	}
	if !s.Started {
		return decidePreparing(s)
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
		// The deletion of a CRD sets a deletionTimestamp on Alive past every policy: nobody asked for the cluster's end.
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
	case !s.Started && s.Readiness == Unready:
		return NotReady
	}
	return ""
}

// complete reports whether nothing but our finalizer is left.
func (s State) complete() bool { return s.Started && s.Work == Finished && s.Recorded }

// decideStopped deletes nothing. Before Started the cluster lives on, and needs its new volumes.
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

// decidePreparing writes the freeze, the plan and the kept volumes, in this order: what is listed before the freeze is
// in force is not all that there will be.
func decidePreparing(s State) Decision {
	switch {
	case s.Readiness == Unchecked:
		return Decision{Preparing, Wait, Checking}
	case !s.Confirmed:
		return Decision{Preparing, Confirm, Starting}
	case s.Freeze == NoFreeze:
		return Decision{Preparing, WriteFreeze, FreezeMissing}
	case s.Freeze == Written:
		return Decision{Preparing, Wait, FreezePending}
	case s.Work == Unlisted:
		return Decision{Preparing, Wait, Unreadable}
	case !s.Planned:
		return Decision{Preparing, SavePlan, Planning}
	case !s.Kept:
		return Decision{Preparing, Keep, Keeping}
	}
	return Decision{Preparing, Start, Starting}
}

// decideStarted deletes what is to be deleted. A volume that appears late is kept before anything else is deleted.
func decideStarted(s State) Decision {
	switch {
	case !s.Confirmed:
		return Decision{TearingDown, Confirm, Deleting}
	case s.Freeze == NoFreeze:
		return Decision{TearingDown, WriteFreeze, FreezeMissing}
	case s.Freeze == Written:
		return Decision{TearingDown, Wait, FreezePending}
	case !s.Kept:
		return Decision{TearingDown, Keep, Keeping}
	}
	switch s.Work {
	case Ready:
		return Decision{TearingDown, Delete, Deleting}
	case Awaited:
		return Decision{TearingDown, Wait, Remaining}
	case Quiet:
		return Decision{TearingDown, Recheck, Settling}
	case Finished:
		return decideFinished(s)
	default: // what is not seen is not gone
		return Decision{TearingDown, Wait, Unreadable}
	}
}

// decideFinished removes our finalizer last: an Alive that is gone was complete.
func decideFinished(s State) Decision {
	if !s.Recorded {
		return Decision{Complete, Record, Completed}
	}
	return Decision{Complete, Release, Completed}
}
