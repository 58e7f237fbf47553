package window

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// State is what is known of an object, of the API server, and of the request to delete the object.
type State struct {
	graceful.State
	// Ours: the API server has graceful deletion, and writes the annotation itself.
	Ours bool
	// InField: the deadline is in deletionGracePeriodSeconds, which an API server of upstream does not change.
	InField bool
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

// FieldStays: the deadline is in a field that the API server does not change.
const FieldStays graceful.Reason = "FieldStays"

// Decide returns what is done with one object. It is total and pure.
func Decide(s State) Decision {
	s.NoRoom = false // the API server refuses the annotation then, and nothing is deleted
	decision := graceful.Decide(s.State)
	return Decision{actionFor(s, decision), reasonFor(s, decision)}
}

// changes reports whether the decision moves a deadline, or makes a plain deletion a forced one.
func changes(decision graceful.Decision) bool {
	return decision.Action == graceful.SetForced || decision.Action == graceful.SetDeadline
}

func actionFor(s State, decision graceful.Decision) Action {
	stays := s.Finalizers != graceful.NoneLeft && s.Existing != graceful.Live && !changes(decision)
	switch {
	case stays && s.Request.NamesGrace() && !decision.Accepted():
		return Refuse
	case stays:
		return Nothing
	case !changes(decision) && decision.Action != graceful.SetPlain, s.Ours:
		return Delete
	case changes(decision) && s.InField:
		return Refuse
	case changes(decision):
		return Annotate
	case s.Annotated: // it could be that of a request that died after its first write
		return Unannotate
	}
	return Delete
}

func reasonFor(s State, decision graceful.Decision) graceful.Reason {
	if changes(decision) && s.InField && !s.Ours {
		return FieldStays
	}
	return decision.Reason
}

// maxSeconds is the longest grace period at an API server of upstream: it counts from the deletion timestamp, which
// another clock may have written.
const maxSeconds = deadline.MaxSeconds - 60

// leftover is the age of an annotation that could be in force: a minute, and the time until the DELETE.
const leftover = 5 * time.Minute

// observe returns the state of an object, and the window that the request asks for. now is the time of the API server.
func observe(object metav1.Object, seconds *int64, now time.Time) (State, deadline.Window) {
	before := deadline.Of(object)
	state := State{State: graceful.State{Existing: existing(before.Kind())}}
	if len(object.GetFinalizers()) == 0 {
		state.Finalizers = graceful.NoneLeft
	}
	found, ok := deadline.Parse(object.GetAnnotations()[deadline.Annotation])
	state.Annotated = ok && object.GetDeletionTimestamp() == nil && found.Start.Sub(now).Abs() <= leftover
	if field := object.GetDeletionGracePeriodSeconds(); field != nil && state.Existing == graceful.Graceful {
		state.InField = *field > 0
	}
	if seconds == nil {
		state.Request = graceful.NoGrace
		return state, deadline.Window{}
	}
	window := windowOf(object, *seconds, now.Truncate(time.Second))
	switch {
	case *seconds == 0:
		state.Request = graceful.Zero
	case before.Kind() == deadline.NotDeleted, before.Kind() == deadline.Graceful && window.End.Before(before.Deadline(0)):
		state.Request = graceful.Earlier
	default:
		state.Request = graceful.NotEarlier
	}
	return state, window
}

// windowOf returns the window that the request asks for. That of a deletion keeps its start, which binds it to the
// deletion, and ends after it unless the request is force.
func windowOf(object metav1.Object, seconds int64, now time.Time) deadline.Window {
	start := now
	if object.GetDeletionTimestamp() != nil {
		start = deadline.Of(object).Requested()
		found, ok := deadline.Parse(object.GetAnnotations()[deadline.Annotation])
		if ok && found.Binds(start) {
			start = found.Start
		}
	}
	if seconds == 0 {
		return deadline.Window{Start: start, End: start}
	}
	end := now.Add(time.Duration(min(seconds, maxSeconds)) * time.Second)
	if least := start.Add(time.Second); end.Before(least) {
		end = least
	}
	return deadline.Window{Start: start, End: end}
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
