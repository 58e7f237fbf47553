package demo

import (
	"context"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// delay is how long an event waits for earlier events from slower sources.
	delay = 250 * time.Millisecond
	// beat is the period in which due events are printed.
	beat = 25 * time.Millisecond
)

// recorder collects the events of a run from all sources and prints them in order of
// time.
type recorder struct {
	timeline *timeline
	printer  Printer
	// fail is called with the first error of the printer; nothing is printed after it.
	fail   func(error)
	err    error
	events chan Event
	done   chan struct{}
}

// startRecorder starts a recorder. finish must be called.
func startRecorder(timeline *timeline, printer Printer, fail func(error)) *recorder {
	r := &recorder{
		timeline: timeline,
		printer:  printer,
		fail:     fail,
		events:   make(chan Event),
		done:     make(chan struct{}),
	}
	go r.record()
	return r
}

// tell records an event. Any goroutine may call it until finish is called.
func (r *recorder) tell(event Event) { r.events <- event }

// finish prints the remaining events and returns the error of the printer.
func (r *recorder) finish() error {
	close(r.events)
	<-r.done
	return r.err
}

// record prints events as they become due.
func (r *recorder) record() {
	defer close(r.done)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case event, open := <-r.events:
			if !open {
				r.print(r.timeline.rest())
				return
			}
			r.timeline.add(event)
		case now := <-ticker.C:
			r.print(r.timeline.before(now.Add(-delay)))
		}
	}
}

// print prints events unless the printer failed before.
func (r *recorder) print(events []Event) {
	for _, event := range events {
		if r.err != nil {
			return
		}
		if r.err = r.printer.Event(event); r.err != nil {
			r.fail(r.err)
		}
	}
}

// followWrites calls tell for each write in an audit log until the log has a request for
// the volume called last, or ctx ends.
func followWrites(ctx context.Context, path, last string, tell func(Event)) error {
	for request, err := range sandbox.FollowAudit(ctx, path) {
		if err != nil {
			return err
		}
		if request.Resource == volumes && request.Name == last {
			return nil
		}
		if event, shown := describeWrite(request); shown {
			tell(event)
		}
	}
	return nil
}

// followCalls calls tell for each call in the log of a driver until the log has the call
// of listVolumes, or ctx ends.
func followCalls(ctx context.Context, path string, tell func(Event)) error {
	for call, err := range sandbox.FollowCalls(ctx, path) {
		if err != nil {
			return err
		}
		if call.Method == listMethod {
			return nil
		}
		if event, shown := describeCall(call); shown {
			tell(event)
		}
	}
	return nil
}
