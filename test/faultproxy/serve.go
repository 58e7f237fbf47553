package faultproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errCut ends a stream or a request without an answer.
var errCut = errors.New("cut by the fault proxy")

// exchange is one request and the decision about it.
type exchange struct {
	request *request
	made    *decision
}

// exchangeKey is the key of the exchange in the context of a request.
type exchangeKey struct{}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.gate.wait(r.Context()) != nil {
		panic(http.ErrAbortHandler)
	}
	parsed, err := readRequest(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the program has gone
	}
	p.mu.Lock()
	p.requests++
	p.mu.Unlock()
	e := &exchange{request: parsed, made: p.decider.decide(parsed)}
	if p.config.NoWatchList && parsed.isWatchList() {
		replyOf(noWatchList()).send(w)
		return
	}
	if !p.before(w, r, e) {
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
}

// before injects the faults of requests that have not reached the API server. It reports
// whether the request is to be forwarded.
func (p *Proxy) before(w http.ResponseWriter, r *http.Request, e *exchange) bool {
	fault := e.made.fault
	if status, refused := statusOf(fault.Kind, e.request); refused && !fault.Kind.isAfter() {
		p.inject(fault)
		replyOf(status).send(w)
		return false
	}
	switch fault.Kind {
	case CutBefore:
		p.inject(fault)
		panic(http.ErrAbortHandler)
	case Disconnect:
		p.inject(fault)
		p.endpoint.disconnect()
		panic(http.ErrAbortHandler)
	case Outage:
		p.inject(fault)
		p.Outage(fault.Delay)
		panic(http.ErrAbortHandler)
	case DelayRequest:
		p.inject(fault)
		if pass(r.Context(), fault.Delay) != nil {
			panic(http.ErrAbortHandler)
		}
	default: // later, or none
	}
	return true
}

// changeResponse injects the faults of requests that the API server has answered.
func (p *Proxy) changeResponse(response *http.Response) error {
	ctx := response.Request.Context()
	if err := p.gate.wait(ctx); err != nil {
		return err
	}
	if p.config.Change != nil {
		if err := p.config.Change(response); err != nil {
			return err
		}
	}
	e := ctx.Value(exchangeKey{}).(*exchange)
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil // no effect that could be lost, no stream
	}
	if e.request.verb == "watch" {
		response.Body = p.newWatch(ctx, response, e)
	}
	return p.after(ctx, response, e)
}

// after injects the faults of requests that took effect.
func (p *Proxy) after(ctx context.Context, response *http.Response, e *exchange) error {
	fault := e.made.fault
	switch fault.Kind {
	case CutAfter:
		p.inject(fault)
		return errCut
	case ErrorAfter, TimeoutAfter:
		p.inject(fault)
		status, _ := statusOf(fault.Kind, e.request)
		replyOf(status).replace(response)
	case DelayAnswer:
		p.inject(fault)
		return pass(ctx, fault.Delay)
	case SlowList:
		p.inject(fault)
		response.Body = newSlowBody(ctx, response, fault.Delay)
	default: // injected before, or none
	}
	return nil
}

const (
	// pieces is the number of pieces of a slow list.
	pieces = 10
	// piece is the size of each in bytes if the size of the list is unknown.
	piece = 4096
)

// slowBody returns a body in pieces with a delay before each.
type slowBody struct {
	io.ReadCloser
	ctx   context.Context
	size  int
	left  int // delays
	delay time.Duration
}

func newSlowBody(ctx context.Context, response *http.Response, total time.Duration) *slowBody {
	size := piece
	if response.ContentLength > 0 {
		size = int(response.ContentLength/pieces) + 1
	}
	return &slowBody{ReadCloser: response.Body, ctx: ctx, size: size, left: pieces, delay: total / pieces}
}

// Read implements [io.Reader].
func (d *slowBody) Read(buffer []byte) (int, error) {
	if d.left == 0 {
		return d.ReadCloser.Read(buffer)
	}
	d.left--
	if err := pass(d.ctx, d.delay); err != nil {
		return 0, err
	}
	return d.ReadCloser.Read(buffer[:min(len(buffer), d.size)])
}
