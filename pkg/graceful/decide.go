package graceful

// Decide returns what the API server does to the deletion of one object. It is total and pure.
func Decide(s State) Decision {
	switch {
	case s.Request == OtherWrite:
		return decideWrite(s)
	case s.Finalizers == NoneLeft:
		return decideWithoutFinalizers(s)
	case s.Finalizers == FirstAdded:
		return decideFirstFinalizer(s)
	}
	switch s.Existing {
	case Live:
		return decideLive(s)
	case Plain:
		return decidePlain(s)
	case Forced:
		return decideForced(s)
	default:
		return decideGraceful(s)
	}
}

// decideWrite keeps the deadline in a write that is no DELETE.
func decideWrite(s State) Decision {
	switch {
	case s.Existing == Live:
		return Decision{Leave, NotDeleted}
	case s.Finalizers == NoneLeft:
		return Decision{Remove, NoFinalizerLeft}
	case s.NoRoom: // a stored object above the limit could never lose a finalizer
		return Decision{Reject, NoRoom}
	}
	return Decision{Keep, DeadlineKept}
}

// decideWithoutFinalizers lets an object go at once that nothing has to be done for.
func decideWithoutFinalizers(s State) Decision {
	switch {
	case s.Existing != Live:
		return Decision{Remove, NoFinalizerLeft}
	case s.Request.named():
		return Decision{Leave, NeedsFinalizer}
	}
	return Decision{Leave, NoFinalizer}
}

// decideFirstFinalizer ignores the grace period of a request that adds the only finalizer: the finalizer is the
// garbage collector's, which knows no deadline.
func decideFirstFinalizer(s State) Decision {
	reason := NoFinalizer
	switch {
	case s.Request.named():
		reason = NeedsFinalizer
	case s.Request == NoGrace:
		reason = NoGraceRequested
	}
	switch s.Existing {
	case Live:
		return Decision{SetPlain, reason}
	case Plain:
		return Decision{Leave, reason}
	default:
		return Decision{Keep, reason}
	}
}

func decideLive(s State) Decision {
	switch {
	case s.Request == NoGrace:
		return Decision{SetPlain, NoGraceRequested}
	case s.NoRoom:
		return Decision{SetPlain, NoRoom}
	case s.Request == Zero:
		return Decision{SetForced, ForceRequested}
	}
	return Decision{SetDeadline, Granted}
}

func decidePlain(s State) Decision {
	switch {
	case s.Request == NoGrace:
		return Decision{Leave, AlreadyPlain}
	case s.NoRoom:
		return Decision{Leave, NoRoom}
	case s.Request == Zero:
		return Decision{SetForced, ForceRequested}
	}
	return Decision{Leave, OnlyForceShortens}
}

// decideForced changes nothing: a forced deletion is as early as can be.
func decideForced(s State) Decision {
	if s.Request == Zero {
		return Decision{Keep, ForceRequested}
	}
	return Decision{Keep, AlreadyForced}
}

// decideGraceful moves the deadline earlier. An object without room has its grace period from another program.
func decideGraceful(s State) Decision {
	switch {
	case s.Request == NotEarlier:
		return Decision{Keep, NeverLater}
	case s.Request == NoGrace:
		return Decision{Keep, DeadlineKept}
	case s.NoRoom:
		return Decision{Keep, NoRoom}
	case s.Request == Zero:
		return Decision{SetForced, ForceRequested}
	}
	return Decision{SetDeadline, Shortened}
}

// Action is what the API server does with the object that a stock API server would store.
type Action int

const (
	// Leave stores what a stock API server stores.
	Leave Action = iota
	// Keep stores the deadline from before the request.
	Keep
	// SetPlain stores what a stock API server stores, without the annotation of the deletion window.
	SetPlain
	// SetForced ends the grace period now, and marks the deletion as forced.
	SetForced
	// SetDeadline ends the grace period after the requested seconds.
	SetDeadline
	// Remove removes the object in this request.
	Remove
	// Reject refuses the write.
	Reject
)

// String returns the name of the value.
func (a Action) String() string {
	return name(int(a), "Leave", "Keep", "SetPlain", "SetForced", "SetDeadline", "Remove", "Reject")
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// String returns the action and the reason.
func (d Decision) String() string { return d.Action.String() + ", " + string(d.Reason) }

// Accepted reports whether the grace period of the request is in force: the column "CheckGracefulDelete Return" of
// the KEP's scenario matrix.
func (d Decision) Accepted() bool {
	return d.Reason == ForceRequested || d.Reason == Granted || d.Reason == Shortened
}

// Reason is the reason of a decision.
type Reason string

const (
	// NotDeleted: the object is not being deleted.
	NotDeleted Reason = "NotDeleted"
	// NoGraceRequested: the DELETE names no grace period.
	NoGraceRequested Reason = "NoGraceRequested"
	// ForceRequested: the DELETE names the grace period 0.
	ForceRequested Reason = "ForceRequested"
	// Granted: the object gets its first deadline.
	Granted Reason = "Granted"
	// Shortened: the deadline moves earlier.
	Shortened Reason = "Shortened"
	// NeverLater: the requested deadline is not earlier than that of the object.
	NeverLater Reason = "NeverLater"
	// DeadlineKept: the request names no grace period, and the deadline stays.
	DeadlineKept Reason = "DeadlineKept"
	// AlreadyPlain: the object was deleted without a grace period before.
	AlreadyPlain Reason = "AlreadyPlain"
	// AlreadyForced: the object was deleted with the grace period 0 before.
	AlreadyForced Reason = "AlreadyForced"
	// OnlyForceShortens: a deletion without a grace period has no deadline that could move.
	OnlyForceShortens Reason = "OnlyForceShortens"
	// NoFinalizer: the object had no finalizer before the request.
	NoFinalizer Reason = "NoFinalizer"
	// NeedsFinalizer: as NoFinalizer, and the requested grace period has no effect.
	NeedsFinalizer Reason = "NeedsFinalizer"
	// NoFinalizerLeft: the last finalizer of a deleted object is gone.
	NoFinalizerLeft Reason = "NoFinalizerLeft"
	// NoRoom: the annotations would pass their limit.
	NoRoom Reason = "NoRoom"
)
