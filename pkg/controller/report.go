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

// Event is the content of a Kubernetes event about a decision.
type Event struct {
	// Type is v1.EventTypeNormal or v1.EventTypeWarning.
	Type string
	// Reason is one CamelCase word; alerts and scripts match it.
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

// Object is an API object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Reporter sends events. The same event of an object is sent again only after another
// event of the object, or after repeatInterval.
type Reporter struct {
	recorder record.EventRecorder

	mu   sync.Mutex
	last map[types.UID]report
}

// report is an event and when it was sent.
type report struct {
	event Event
	at    time.Time
}

// repeatInterval is less than the hour after which API servers drop events by default.
const repeatInterval = 30 * time.Minute

// NewReporter returns a reporter that sends through the recorder.
func NewReporter(recorder record.EventRecorder) *Reporter {
	return &Reporter{recorder: recorder, last: map[types.UID]report{}}
}

// Report sends the event unless it is the last event of the object and was sent within
// repeatInterval.
func (r *Reporter) Report(object Object, event Event) {
	if r.isNew(object.GetUID(), report{event: event, at: time.Now()}) {
		r.recorder.Event(object, event.Type, event.Reason, event.Message)
	}
}

// isNew records the report and returns true, or returns false for a repetition.
func (r *Reporter) isNew(uid types.UID, now report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.last[uid]; last.event == now.event && now.at.Sub(last.at) < repeatInterval {
		return false
	}
	r.last[uid] = now
	return true
}

// ReportAlways sends the event in any case: for something that happened once more, not
// for a state that goes on.
func (r *Reporter) ReportAlways(object Object, event Event) {
	r.recorder.Event(object, event.Type, event.Reason, event.Message)
}

// Forget drops the last event of an object that is gone, or whose trouble is over.
func (r *Reporter) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, uid)
}
