package window

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// State is what is known of an object, and of the request to delete the object.
type State struct {
	graceful.State
	// Sent: the API server has accepted the DELETE.
	Sent bool
	// Written: the object has the annotation of this request.
	Written bool
	// DeleteOnly: no annotation moves the deadline, only a DELETE. It is in deletionGracePeriodSeconds, or the API server
	// has not stored the annotation.
	DeleteOnly bool
	// Exposed: the object is in a grace period that a DELETE at an API server of upstream would end.
	Exposed bool
	// Annotated: the object lives, and has an annotation that a deletion would put in force.
	Annotated bool
}

// Action is what is done with the object.
type Action int

const (
	// Nothing: the object is being deleted as requested.
	Nothing Action = iota
	// Refuse: the request cannot be met, and nothing is sent.
	Refuse
	// Delete sends a DELETE.
	Delete
	// Annotate writes the annotation, then sends a DELETE.
	Annotate
	// Unannotate removes an annotation that is not of this deletion, then sends a DELETE.
	Unannotate
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "nothing", "refuse", "delete", "annotate", "unannotate")
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason graceful.Reason
}

// EndsAtStock: an API server of upstream would end the grace period instead of moving the deadline.
const EndsAtStock graceful.Reason = "EndsAtStock"

// NotInForce: the object was deleted without the grace period of the request, and no annotation is stored.
const NotInForce graceful.Reason = "NotInForce"

// Decide returns what is done next with one object. It is total and pure.
func Decide(s State) Decision {
	decision := decide(s)
	if decision == (Decision{Delete, graceful.Shortened}) && s.Exposed {
		return Decision{Refuse, EndsAtStock}
	}
	return decision
}

func decide(s State) Decision {
	s.NoRoom = false // the API server refuses the annotation then
	decision := graceful.Decide(s.State)
	switch {
	case s.Existing == graceful.Live:
		return decideLive(s, decision)
	case s.Sent:
		return decideSent(s, decision)
	case s.Finalizers == graceful.NoneLeft, s.Written, changes(decision):
		return Decision{Delete, decision.Reason}
	case s.Request.NamesGrace() && !decision.Accepted():
		return Decision{Refuse, decision.Reason}
	}
	return Decision{Nothing, decision.Reason}
}

// changes reports whether the decision moves a deadline, or makes a plain deletion a forced one.
func changes(decision graceful.Decision) bool {
	return decision.Action == graceful.SetForced || decision.Action == graceful.SetDeadline
}

func decideLive(s State, decision graceful.Decision) Decision {
	switch {
	case s.Sent:
		return Decision{Refuse, graceful.NotDeleted}
	case changes(decision) && !s.Written: // any API server may get the DELETE, also one that ignores grace periods
		return Decision{Annotate, decision.Reason}
	case decision.Action == graceful.SetPlain && s.Annotated: // it could be that of a command that died
		return Decision{Unannotate, decision.Reason}
	}
	return Decision{Delete, decision.Reason}
}

// decideSent decides about an object that is being deleted, after the DELETE. Our API server has moved the deadline,
// that of upstream has left it as it was, and a third one may answer now: both requests are tried by turns.
func decideSent(s State, decision graceful.Decision) Decision {
	late := decision.Reason == graceful.OnlyForceShortens // plain since the DELETE, which was slow, or by another clock
	switch {
	case late && s.DeleteOnly:
		return Decision{Refuse, NotInForce}
	case late:
		return Decision{Annotate, graceful.Granted}
	case changes(decision) && s.DeleteOnly:
		return Decision{Delete, decision.Reason}
	case changes(decision):
		return Decision{Annotate, decision.Reason}
	}
	return Decision{Nothing, decision.Reason}
}

// binding is the longest time from the start of an annotation to a deletion for which it counts.
const binding = time.Minute

// MaxSeconds is the longest grace period of the command. At an API server of upstream it counts from the deletion
// timestamp, which another clock may have written.
const MaxSeconds = deadline.MaxSeconds - 2*60

// leftover is the age of an annotation that could be in force: a minute, and the time until the DELETE.
const leftover = 5 * time.Minute

// fresh is the age up to which the annotation of a living object is not written again: the DELETE needs the rest of the
// minute.
const fresh = binding / 2

// observe returns the state of an object, and the window that the request asks for. now is the time of the API server.
func observe(object metav1.Object, seconds *int64, now time.Time) (State, deadline.Window) {
	before := deadline.Of(object)
	state := State{State: graceful.State{Existing: existing(before.Kind())}}
	if len(object.GetFinalizers()) == 0 {
		state.Finalizers = graceful.NoneLeft
	}
	found, ok := deadline.Parse(object.GetAnnotations()[deadline.Annotation])
	state.Annotated = ok && object.GetDeletionTimestamp() == nil && found.Start.Sub(now).Abs() <= leftover
	if field := object.GetDeletionGracePeriodSeconds(); field != nil {
		state.DeleteOnly = *field > 0
	}
	state.Exposed = isExposed(object, before, now)
	if seconds == nil {
		state.Request = graceful.NoGrace
		return state, deadline.Window{}
	}
	window := windowOf(object, *seconds, now.Truncate(time.Second))
	switch {
	case *seconds == 0:
		state.Request = graceful.Zero
	case before.Kind() == deadline.NotDeleted, window.End.Before(before.Deadline(0)):
		state.Request = graceful.Earlier
	default:
		state.Request = graceful.NotEarlier
	}
	return state, window
}

// isExposed reports whether an API server of upstream would end the grace period by a DELETE. It sets the deletion
// timestamp to now if that is ahead, and deletionGracePeriodSeconds to 0: what counts then is the annotation.
func isExposed(object metav1.Object, before deadline.Deletion, now time.Time) bool {
	if before.Kind() != deadline.Graceful {
		return false
	}
	after := before.Requested()
	if now.Before(after) {
		after = now
	}
	read := deadline.Read(after, object.GetAnnotations()[deadline.Annotation])
	return !read.Deadline(0).Equal(before.Deadline(0))
}

// windowOf returns the window that the request asks for. That of a living object ends later by the time that the DELETE
// may take, so that a slow DELETE uses up nothing: afterwards the deadline moves. That of a deletion keeps its start,
// which binds it to the deletion, and ends after it unless the request is force.
func windowOf(object metav1.Object, seconds int64, now time.Time) deadline.Window {
	start, end := now, now.Add(time.Duration(min(seconds, MaxSeconds))*time.Second)
	if object.GetDeletionTimestamp() == nil {
		end = end.Add(binding)
	} else {
		start = startOf(object)
	}
	if seconds == 0 {
		return deadline.Window{Start: start, End: start}
	}
	if least := start.Add(time.Second); end.Before(least) {
		end = least
	}
	return deadline.Window{Start: start, End: end}
}

// startOf returns the start of the window of a deletion.
func startOf(object metav1.Object) time.Time {
	requested := deadline.Of(object).Requested()
	found, ok := deadline.Parse(object.GetAnnotations()[deadline.Annotation])
	if ok && found.Binds(requested) {
		return found.Start
	}
	return requested
}

func existing(kind deadline.Kind) graceful.Existing {
	switch kind {
	case deadline.Unspecified:
		return graceful.Plain
	case deadline.Forced:
		return graceful.Forced
	case deadline.Graceful:
		return graceful.Graceful
	default:
		return graceful.Live
	}
}
