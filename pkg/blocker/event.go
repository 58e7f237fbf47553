package blocker

import (
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// The event about a deletion that waits.
const (
	// EventName is the reason of the event.
	EventName = "DeletionWaiting"
	// EventDelay is how long a deletion waits before the event is sent.
	EventDelay = 30 * time.Second
	// EventInterval is the least time between two such events about one object.
	EventInterval = 30 * time.Minute
	// EventLifetime is how long API servers keep an event by default. A more exact event
	// replaces the event for that long.
	EventLifetime = time.Hour
)

// maxEventText is the longest message of an event that API servers accept, in bytes.
const maxEventText = 1024

// EventText returns the message of the event: the reason and its meaning, the holder and
// the next step. The holder and the next step may be empty.
func EventText(reason Reason, holder, next string) string {
	text := reason.String() + ": " + reason.Describe().Meaning
	if holder != "" {
		text += " Waiting for " + strings.TrimSuffix(holder, ".") + "."
	}
	if next != "" {
		text += " Next: " + next
	}
	if len(text) > maxEventText {
		text = strings.ToValidUTF8(text[:maxEventText-3], "") + "..."
	}
	return text
}

// EventText returns the message of the event about the blocker.
func (b Blocker) EventText() string { return EventText(b.Reason, b.Holder, b.Next) }

// EventState is what decides whether the event about a waiting deletion is sent now.
type EventState struct {
	// Waited: the deletion has waited for EventDelay.
	Waited bool
	// SentRecently: the event about the object was sent within EventInterval.
	SentRecently bool
	// MoreExactEvent: the program sent a more exact event about the wait, such as
	// VolumeFailedDelete, within EventLifetime.
	MoreExactEvent bool
	// NamespaceTerminating: the API server refuses events in the namespace of the object.
	NamespaceTerminating bool
}

// EventAction is what to do about the event.
type EventAction int

const (
	// NoEvent: no event can be sent.
	NoEvent EventAction = iota
	// Postpone decides again later.
	Postpone
	// SendEvent sends the event.
	SendEvent
)

// String returns the name of the value.
func (a EventAction) String() string { return enum.Name(a, "NoEvent", "Postpone", "SendEvent") }

// EventReason is why the event is sent or not.
type EventReason int

const (
	// NamespaceTerminating: the namespace takes no events.
	NamespaceTerminating EventReason = iota
	// WaitingBriefly: the deletion may end at once.
	WaitingBriefly
	// MoreExactEvent: another event says more.
	MoreExactEvent
	// SentRecently: the event was sent already.
	SentRecently
	// WaitingLong: no event was sent yet.
	WaitingLong
)

// String returns the name of the value.
func (r EventReason) String() string {
	return enum.Name(r, "NamespaceTerminating", "WaitingBriefly", "MoreExactEvent", "SentRecently", "WaitingLong")
}

// EventDecision is an action and its reason.
type EventDecision struct {
	Action EventAction
	Reason EventReason
}

// DecideEvent returns whether the event about a waiting deletion is sent now. It is total
// and pure.
func DecideEvent(s EventState) EventDecision {
	switch {
	case s.NamespaceTerminating:
		return EventDecision{NoEvent, NamespaceTerminating}
	case !s.Waited:
		return EventDecision{Postpone, WaitingBriefly}
	case s.MoreExactEvent:
		return EventDecision{Postpone, MoreExactEvent}
	case s.SentRecently:
		return EventDecision{Postpone, SentRecently}
	}
	return EventDecision{SendEvent, WaitingLong}
}
