package controller

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// Event is what a user reads of a decision.
type Event struct {
	// Type is v1.EventTypeNormal or v1.EventTypeWarning.
	Type string
	// Reason is one word, which alerts and scripts match.
	Reason string
	// Message is a sentence.
	Message string
}

// Warn returns an event that asks for attention.
func Warn(reason, message string) Event {
	return Event{Type: v1.EventTypeWarning, Reason: reason, Message: message}
}

// Note returns an event that informs.
func Note(reason, message string) Event {
	return Event{Type: v1.EventTypeNormal, Reason: reason, Message: message}
}

// Object is what an event can be about.
type Object interface {
	metav1.Object
	runtime.Object
}

// Reporter sends events. An object that waits is looked at often and reported
// once: the same event is not sent again until another one is.
type Reporter struct {
	recorder record.EventRecorder

	mu   sync.Mutex
	last map[types.UID]Event
}

// NewReporter returns a reporter that sends through the recorder.
func NewReporter(recorder record.EventRecorder) *Reporter {
	return &Reporter{recorder: recorder, last: map[types.UID]Event{}}
}

// Report sends the event about the object unless it was the last one sent.
func (r *Reporter) Report(object Object, event Event) {
	r.mu.Lock()
	repeated := r.last[object.GetUID()] == event
	r.last[object.GetUID()] = event
	r.mu.Unlock()
	if !repeated {
		r.recorder.Event(object, event.Type, event.Reason, event.Message)
	}
}

// Always sends the event even if it was the last one sent, for what happened
// again and is not merely still so.
func (r *Reporter) Always(object Object, event Event) {
	r.recorder.Event(object, event.Type, event.Reason, event.Message)
}

// Forget drops what was last reported of an object that is gone or well again.
func (r *Reporter) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, uid)
}
