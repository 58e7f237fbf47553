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
// event of the object, or after repeatInterval, a failure sooner.
type Reporter struct {
	recorder record.EventRecorder

	mu sync.Mutex
	// last are the last events about states, failures those about failures that are retried:
	// one state does not make an equal failure new.
	last, failures map[types.UID]report
	// delayed are the events of ReportAfter that were not sent yet, one per object.
	delayed map[types.UID]*delayedReport
}

// report is an event, when it was sent, and the time until it may be sent again.
type report struct {
	event Event
	at    time.Time
	pause time.Duration
}

// delayedReport is an event and the timer that sends it.
type delayedReport struct {
	event Event
	timer *time.Timer
}

// repeatInterval is less than the hour after which API servers drop events by default.
const repeatInterval = 30 * time.Minute

// A failure that repeats is sent again after firstFailurePause, which doubles each time up
// to lastFailurePause: exeunt why takes a failure of the last ten minutes for current.
const (
	firstFailurePause = 30 * time.Second
	lastFailurePause  = 5 * time.Minute
)

// NewReporter returns a reporter that sends through the recorder.
func NewReporter(recorder record.EventRecorder) *Reporter {
	return &Reporter{recorder: recorder, last: map[types.UID]report{}, failures: map[types.UID]report{},
		delayed: map[types.UID]*delayedReport{}}
}

// Report sends the event unless it is the last event of the object and was sent within
// repeatInterval.
func (r *Reporter) Report(object Object, event Event) {
	r.mu.Lock()
	isNew := r.isNewState(object.GetUID(), event)
	if isNew {
		delete(r.failures, object.GetUID())
	}
	r.mu.Unlock()
	r.sendIf(isNew, object, event)
}

// ReportFailure sends the event about a failure that is retried. While the same failure
// repeats, the event is sent again at growing intervals.
func (r *Reporter) ReportFailure(object Object, event Event) {
	uid := object.GetUID()
	r.mu.Lock()
	if r.failures[uid].event != event {
		delete(r.last, uid)
	}
	isNew := isNew(r.failures, uid, report{event: event, at: time.Now(), pause: firstFailurePause}, lastFailurePause)
	r.mu.Unlock()
	r.sendIf(isNew, object, event)
}

// ReportRefusal sends the event about a write of the object that was refused or undone ([RefusalEvent]), and returns the
// error. Other errors have no event.
func (r *Reporter) ReportRefusal(object Object, write string, err error) error {
	if IsRefusal(err) {
		r.ReportFailure(object, RefusalEvent(write, err))
	}
	return err
}

func (r *Reporter) sendIf(isNew bool, object Object, event Event) {
	if isNew {
		r.recorder.Event(object, event.Type, event.Reason, event.Message)
	}
}

// ReportAfter reports the event after the delay, unless the event is withdrawn or replaced
// before. It replaces another delayed event of the object; the same event keeps its time.
func (r *Reporter) ReportAfter(object Object, event Event, delay time.Duration) {
	r.ReportWhen(object, event, func(waited time.Duration) time.Duration { return delay - waited })
}

// ReportWhen is ReportAfter with a delay that may change: due returns after what time to ask
// again, and 0 or less if the event is due. It gets the time since the first call.
func (r *Reporter) ReportWhen(object Object, event Event, due func(waited time.Duration) time.Duration) {
	delay, uid, began := due(0), object.GetUID(), time.Now()
	if delay <= 0 {
		r.Withdraw(uid)
		r.Report(object, event)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.delayed[uid]; before != nil {
		if before.event == event {
			return
		}
		before.timer.Stop()
	}
	delayed := &delayedReport{event: event}
	delayed.timer = time.AfterFunc(delay, func() {
		if again := due(time.Since(began)); again > 0 {
			r.delayAgain(uid, delayed, again)
		} else if r.takeDelayed(uid, delayed) {
			r.recorder.Event(object, event.Type, event.Reason, event.Message)
		}
	})
	r.delayed[uid] = delayed
}

// delayAgain starts the timer again, unless the event was withdrawn or replaced.
func (r *Reporter) delayAgain(uid types.UID, delayed *delayedReport, delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delayed[uid] == delayed {
		delayed.timer.Reset(delay)
	}
}

// takeDelayed returns whether the delayed event is to be sent: neither withdrawn nor replaced,
// nor sent by Report.
func (r *Reporter) takeDelayed(uid types.UID, delayed *delayedReport) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delayed[uid] != delayed {
		return false
	}
	delete(r.delayed, uid)
	return r.isNewState(uid, delayed.event)
}

// Withdraw drops an event of ReportAfter that was not sent yet: its state is over.
func (r *Reporter) Withdraw(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdraw(uid)
}

func (r *Reporter) withdraw(uid types.UID) {
	if delayed := r.delayed[uid]; delayed != nil {
		delayed.timer.Stop()
		delete(r.delayed, uid)
	}
}

// isNewState records an event about a state, and reports whether it is to be sent. The caller
// holds the mutex.
func (r *Reporter) isNewState(uid types.UID, event Event) bool {
	return isNew(r.last, uid, report{event: event, at: time.Now(), pause: repeatInterval}, repeatInterval)
}

// isNew records the report and returns true, or returns false for a repetition that comes
// too early.
func isNew(reports map[types.UID]report, uid types.UID, now report, longest time.Duration) bool {
	if last := reports[uid]; last.event == now.event {
		if now.at.Sub(last.at) < last.pause {
			return false
		}
		now.pause = min(2*last.pause, longest)
	}
	reports[uid] = now
	return true
}

// ReportAlways sends the event in any case: for something that happened once more, not
// for a state that goes on.
func (r *Reporter) ReportAlways(object Object, event Event) {
	r.recorder.Event(object, event.Type, event.Reason, event.Message)
}

// Forget drops the last event of an object that is gone, or whose trouble is over, and an
// event of it that was not sent yet.
func (r *Reporter) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdraw(uid)
	delete(r.last, uid)
	delete(r.failures, uid)
}
