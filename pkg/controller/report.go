package controller

import (
	"sync"
	"time"

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

// WarningEvent returns an event that asks for attention.
func WarningEvent(reason, message string) Event {
	return Event{Type: v1.EventTypeWarning, Reason: reason, Message: message}
}

// NormalEvent returns an event that informs.
func NormalEvent(reason, message string) Event {
	return Event{Type: v1.EventTypeNormal, Reason: reason, Message: message}
}

// Object is what an event can be about.
type Object interface {
	metav1.Object
	runtime.Object
}

// Reporter sends events. An object that waits is looked at often and reported
// seldom: the same event is not sent again until another one is, or until the API
// server may have dropped it.
type Reporter struct {
	recorder record.EventRecorder

	mu   sync.Mutex
	last map[types.UID]report
}

// report is an event that was sent.
type report struct {
	event Event
	at    time.Time
}

// repeat is the time after which an event that is still true is sent again. The API
// server keeps events for an hour, if not told otherwise.
const repeat = 30 * time.Minute

// NewReporter returns a reporter that sends through the recorder.
func NewReporter(recorder record.EventRecorder) *Reporter {
	return &Reporter{recorder: recorder, last: map[types.UID]report{}}
}

// Report sends the event about the object unless it was the last one sent, of late.
func (r *Reporter) Report(object Object, event Event) {
	if r.news(object.GetUID(), report{event: event, at: time.Now()}) {
		r.recorder.Event(object, event.Type, event.Reason, event.Message)
	}
}

// news remembers the report if it is to be sent.
func (r *Reporter) news(uid types.UID, now report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.last[uid]; last.event == now.event && now.at.Sub(last.at) < repeat {
		return false
	}
	r.last[uid] = now
	return true
}

// ReportAlways sends the event even if it was the last one sent, for what happened
// again and is not merely still so.
func (r *Reporter) ReportAlways(object Object, event Event) {
	r.recorder.Event(object, event.Type, event.Reason, event.Message)
}

// Forget drops what was last reported of an object that is gone or well again.
func (r *Reporter) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, uid)
}
