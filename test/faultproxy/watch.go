package faultproxy

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// watchBody is the body of a watch. It injects faults between and within events.
type watchBody struct {
	proxy  *Proxy
	ctx    context.Context
	source io.ReadCloser
	format format
	// request and made are the request and the decision about it.
	request *request
	made    decision

	frames chan []byte
	// failure of the stream, once frames is closed.
	failure error
	closed  chan struct{}
	once    sync.Once
	ticker  *time.Ticker
	tick    int

	// pending is sent next, and end is returned after it.
	pending []byte
	end     error
	// stalled fires at the end of a stall; nil if there is none.
	stalled <-chan time.Time
	// cut is the fault that cuts the next event.
	cut *Fault
}

// newWatch returns the body of the watch that response answers.
func (p *Proxy) newWatch(ctx context.Context, response *http.Response, e *exchange) *watchBody {
	w := &watchBody{
		proxy: p, ctx: ctx, source: response.Body, format: formatOf(response.Header), request: e.request, made: *e.made,
		frames: make(chan []byte), closed: make(chan struct{}), ticker: time.NewTicker(p.config.Tick),
	}
	go w.receive()
	return w
}

// receive reads the events of the API server until the stream ends.
func (w *watchBody) receive() {
	defer close(w.frames)
	stream := bufio.NewReader(w.source)
	for {
		frame, err := w.format.read(stream)
		if len(frame) > 0 {
			select {
			case w.frames <- frame:
			case <-w.closed:
				return
			}
		}
		if err != nil {
			w.failure = err
			return
		}
	}
}

// Close implements [io.Closer].
func (w *watchBody) Close() error {
	w.once.Do(func() {
		close(w.closed)
		w.ticker.Stop()
	})
	return w.source.Close()
}

// Read implements [io.Reader].
func (w *watchBody) Read(buffer []byte) (int, error) {
	for len(w.pending) == 0 {
		if w.end != nil {
			return 0, w.end
		}
		w.next()
	}
	if err := w.proxy.gate.wait(w.ctx); err != nil {
		return 0, err
	}
	count := copy(buffer, w.pending)
	w.pending = w.pending[count:]
	return count, nil
}

// next waits for an event, the end of a stall, or a tick.
func (w *watchBody) next() {
	frames := w.frames
	if w.stalled != nil {
		frames = nil
	}
	select {
	case frame, open := <-frames:
		w.deliver(frame, open)
	case <-w.stalled:
		w.stalled = nil
	case <-w.ticker.C:
		w.decide()
	case <-w.ctx.Done():
		w.end = w.ctx.Err()
	}
}

// deliver passes on an event, or the first part of the event that a fault cuts.
func (w *watchBody) deliver(frame []byte, open bool) {
	if !open {
		w.end = w.failure
		return
	}
	w.remember(frame)
	w.pending = frame
	if w.cut != nil {
		w.proxy.inject(*w.cut)
		w.pending, w.end = frame[:len(frame)/2], errCut
	}
}

// remember notes the version of an event, but not that of an object with which a watch
// begins: such a version may be as old as the object.
func (w *watchBody) remember(frame []byte) {
	parsed := w.format.parse(frame)
	if parsed.Type == watch.Added && (!w.request.namesVersion() || w.request.isWatchList()) {
		return
	}
	w.proxy.versions.note(metadataOf(parsed.Object).ResourceVersion)
}

// decide makes the decision of one tick.
func (w *watchBody) decide() {
	w.tick++
	w.proxy.decider.draw(&w.made, watchKinds, func(kind Kind) bool { return kind != WatchExpired || w.format != opaque })
	fault := w.made.fault
	fault.Tick = w.tick
	if w.cut != nil || w.stalled != nil {
		return // one fault at a time
	}
	switch fault.Kind {
	case WatchDrop:
		w.end = io.EOF
	case WatchCut:
		w.cut = &fault
		return // it is injected with the next event
	case WatchExpired:
		w.expire()
	case WatchStall:
		w.stalled = time.After(fault.Delay)
	default:
		return
	}
	w.proxy.inject(fault)
}

// expire ends the watch with an ERROR event.
func (w *watchBody) expire() {
	status, _ := statusOf(WatchExpired, w.request)
	frame, err := w.format.encode(status)
	if err != nil {
		w.end = err
		return
	}
	w.pending, w.end = frame, io.EOF
}
