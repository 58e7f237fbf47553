package controller

import "github.com/exeunt-io/exeunt/internal/enum"

// Decide returns the next step for one object. It is total and pure.
func Decide(s State) Decision {
	switch {
	case s.Guest == Unknown:
		return Decision{Retry, GuestUnknown}
	case s.Deletion == Gone:
		return decideGone(s)
	case s.Guest == NoRecord && s.Finalizer:
		// Its guest may run, known to another state directory: a second one would write to the same disk, and without the
		// finalizer the first one would be left behind.
		return Decision{Report, RecordMissing}
	case s.Deletion == NotDeleted:
		return decideLive(s)
	case s.Guest == Running:
		return decideEnd(s)
	case !s.Finalizer:
		return Decision{Wait, GuestOff}
	case !s.Confirmed:
		return Decision{Confirm, GuestOff}
	}
	return Decision{RemoveFinalizer, GuestOff}
}

// decideLive starts a guest for an object that cannot vanish before the guest has ended.
func decideLive(s State) Decision {
	switch {
	case !s.Finalizer:
		return Decision{AddFinalizer, GuestNeedsFinalizer}
	case s.Guest == Running:
		return Decision{Wait, GuestRuns}
	case !s.Confirmed:
		return Decision{Confirm, GuestOff}
	}
	return Decision{Start, GuestOff}
}

// decideEnd ends the guest of a deleted object.
func decideEnd(s State) Decision {
	reason := DeadlinePassed
	if s.Deletion == Forced {
		reason = ForceRequested
	}
	switch {
	case s.Deletion == InGrace && s.Request == NotAsked:
		return Decision{RequestShutdown, DeadlineAhead}
	case s.Deletion == InGrace && s.Request == AskedForOther:
		return Decision{NoteDeadline, DeadlineMoved}
	case s.Deletion == InGrace:
		return Decision{Wait, DeadlineAhead}
	case !s.Confirmed:
		return Decision{Confirm, reason}
	}
	return Decision{PowerOff, reason}
}

// decideGone ends no guest: another client has removed the finalizer, or etcd was restored.
func decideGone(s State) Decision {
	switch {
	case s.Guest == NoRecord:
		return Decision{Wait, ObjectGone}
	case !s.Confirmed:
		return Decision{Confirm, ObjectGone}
	case s.Guest == Running:
		return Decision{Report, GuestLeft}
	}
	return Decision{Forget, ObjectGone}
}

// Action is the next step for an object.
type Action int

const (
	// Wait for an event of the object, the end of its guest, or the timer of its deadline.
	Wait Action = iota
	// AddFinalizer makes the record of the guest, and adds the finalizer to the object.
	AddFinalizer
	// Confirm reads the object live, and decides again.
	Confirm
	// Start starts the guest.
	Start
	// RequestShutdown asks the guest to shut down.
	RequestShutdown
	// NoteDeadline sends an event that the deadline has moved.
	NoteDeadline
	// PowerOff ends the guest.
	PowerOff
	// RemoveFinalizer lets the object go.
	RemoveFinalizer
	// Forget removes the record of the guest.
	Forget
	// Report sends an event about what only an administrator can decide.
	Report
	// Retry sends an event about the error, and is retried with backoff.
	Retry
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "Wait", "AddFinalizer", "Confirm", "Start", "RequestShutdown", "NoteDeadline", "PowerOff",
		"RemoveFinalizer", "Forget", "Report", "Retry")
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// String returns the action and the reason.
func (d Decision) String() string { return d.Action.String() + ", " + string(d.Reason) }

// Reason is the reason of a decision.
type Reason string

const (
	// GuestUnknown: it is not proven whether a guest runs.
	GuestUnknown Reason = "GuestUnknown"
	// RecordMissing: the object has the finalizer, and the state directory has no record of a guest.
	RecordMissing Reason = "RecordMissing"
	// GuestNeedsFinalizer: no guest starts for an object that can vanish.
	GuestNeedsFinalizer Reason = "GuestNeedsFinalizer"
	// GuestRuns: the guest of a live object runs.
	GuestRuns Reason = "GuestRuns"
	// GuestOff: no guest runs.
	GuestOff Reason = "GuestOff"
	// DeadlineAhead: the guest may still shut down.
	DeadlineAhead Reason = "DeadlineAhead"
	// DeadlineMoved: the guest has another time than when it was asked.
	DeadlineMoved Reason = "DeadlineMoved"
	// DeadlinePassed: the guest has had its time.
	DeadlinePassed Reason = "DeadlinePassed"
	// ForceRequested: the user does not want to wait.
	ForceRequested Reason = "ForceRequested"
	// GuestLeft: the guest runs, and its object does not exist.
	GuestLeft Reason = "GuestLeft"
	// ObjectGone: the object does not exist.
	ObjectGone Reason = "ObjectGone"
)
