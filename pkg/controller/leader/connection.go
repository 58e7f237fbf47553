package leader

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Connection counts the interruptions of the connection to the API server, and holds back each write of a
// leader until its Lease was found unchanged after the last interruption. etcd cannot be restored from a
// backup while the connection lasts.
type Connection struct {
	interruptions atomic.Int64
	// confirm returns an error unless the Lease of this process is unchanged; nil while the process does not lead.
	confirm atomic.Pointer[func(context.Context) error]
}

// interrupt counts an interruption.
func (c *Connection) interrupt() { c.interruptions.Add(1) }

// unguarded marks the context of a request that is sent without a confirmation: those of the leader Lease itself.
type unguarded struct{}

func withoutGuard(ctx context.Context) context.Context {
	return context.WithValue(ctx, unguarded{}, true)
}

// Wrap returns a RoundTripper that counts interruptions and holds back writes.
func (c *Connection) Wrap(next http.RoundTripper) http.RoundTripper {
	return guardedRoundTripper{next, c}
}

type guardedRoundTripper struct {
	http.RoundTripper
	connection *Connection
}

// WrappedRoundTripper enables client-go to close the idle connections of the transport.
func (g guardedRoundTripper) WrappedRoundTripper() http.RoundTripper { return g.RoundTripper }

// maxNewConnections is how often a write is sent again because it opened a connection.
const maxNewConnections = 3

// errNewConnection: the request opened a connection, on which another API server may answer, or one whose etcd was restored.
var errNewConnection = errors.New("the connection to the API server is a new one")

// RoundTrip sends one request.
func (g guardedRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	confirm := g.connection.confirm.Load()
	if confirm == nil || !isWrite(request) || request.Context().Value(unguarded{}) != nil {
		response, err := g.RoundTripper.RoundTrip(request.WithContext(g.traced(request.Context(), nil)))
		return g.follow(request, response, err)
	}
	for attempt := 1; ; attempt++ {
		if err := (*confirm)(request.Context()); err != nil {
			closeBody(request)
			return nil, fmt.Errorf("the write is not sent: %w", err)
		}
		response, err := g.sendConfirmed(request)
		if !errors.Is(err, errNewConnection) || attempt == maxNewConnections {
			return response, err
		}
		if request, err = rewound(request); err != nil {
			return nil, err
		}
	}
}

// sendConfirmed sends a write, unless that opens a connection: then it returns errNewConnection.
func (g guardedRoundTripper) sendConfirmed(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := g.RoundTripper.RoundTrip(request.WithContext(g.traced(ctx, cancel)))
	if err != nil && errors.Is(context.Cause(ctx), errNewConnection) {
		return nil, errNewConnection
	}
	response, err = g.follow(request, response, err)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	response.Body = &closingBody{response.Body, cancel}
	return response, nil
}

// closingBody ends the context of a request when its answer was read.
type closingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close closes the body and ends the context.
func (b *closingBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// traced returns a context that counts a new connection. refuse, nil for none, ends a request that opens one: over
// HTTP/2 nothing of the request has been sent by then.
func (g guardedRoundTripper) traced(ctx context.Context, refuse context.CancelCauseFunc) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if got.Reused {
			return
		}
		g.connection.interrupt()
		if secure, is := got.Conn.(*tls.Conn); is && refuse != nil && secure.ConnectionState().NegotiatedProtocol == "h2" {
			refuse(errNewConnection)
		}
	}})
}

// follow counts a failed request, and the early end of a watch.
func (g guardedRoundTripper) follow(request *http.Request, response *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil && request.Context().Err() == nil, err == nil && response.StatusCode >= http.StatusInternalServerError:
		g.connection.interrupt()
	case err == nil && isWatch(request):
		response.Body = &watchBody{ReadCloser: response.Body, connection: g.connection, request: request,
			lasts: timeoutOf(request), began: time.Now()}
	}
	return response, err
}

// watchBody counts a watch that the API server does not end after the time which the client has set.
type watchBody struct {
	io.ReadCloser
	connection *Connection
	request    *http.Request
	lasts      time.Duration
	began      time.Time
	closed     atomic.Bool
}

// Read reads events.
func (b *watchBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	isEarly := !errors.Is(err, io.EOF) || time.Since(b.began) < b.lasts
	if err != nil && isEarly && !b.closed.Load() && b.request.Context().Err() == nil {
		b.connection.interrupt()
	}
	return n, err
}

// Close ends the watch.
func (b *watchBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

func isWrite(request *http.Request) bool {
	return request.Method != http.MethodGet && request.Method != http.MethodHead && request.Method != http.MethodOptions
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// timeoutOf returns how long the client lets the watch last.
func timeoutOf(request *http.Request) time.Duration {
	seconds, err := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		return time.Duration(1<<63 - 1)
	}
	return time.Duration(seconds) * time.Second
}

// rewound returns the request with its body from the beginning.
func rewound(request *http.Request) (*http.Request, error) {
	if request.Body == nil || request.GetBody == nil {
		return request, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, fmt.Errorf("read the request again: %w", err)
	}
	again := request.Clone(request.Context())
	again.Body = body
	return again, nil
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

// maxReads is how often the lease is read to confirm it: the connection may be interrupted during a read, and the
// first read opens a new connection.
const maxReads = 3

// ID implements [controller.Term].
func (e *election) ID() controller.TermID {
	e.term.mu.Lock()
	defer e.term.mu.Unlock()
	return e.term.id
}

// Leading implements [controller.Term].
func (e *election) Leading() bool {
	return e.term.remaining() > StopReserve && e.confirm(e.renewing) == nil
}

// confirm returns nil if the lease was found unchanged since the connection to the API server was last interrupted and
// a renewal was due. It reads the lease only if no renewal has found it unchanged.
func (e *election) confirm(ctx context.Context) error {
	for range maxReads {
		if confirmed, err := e.term.isConfirmed(); err != nil || confirmed {
			return err
		}
		_, err, _ := e.confirming.Do("", func() (any, error) {
			return e.leases().Leases(e.ResourceNamespace).Get(e.renewing, e.ResourceName, metav1.GetOptions{})
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		}
	}
	confirmed, err := e.term.isConfirmed()
	if err == nil && !confirmed {
		err = ErrUnconfirmed
	}
	return err
}

// guard holds back each write until confirm returns nil. The returned function ends that.
func (c *Connection) guard(confirm func(context.Context) error) (end func()) {
	c.confirm.Store(&confirm)
	return func() { c.confirm.Store(nil) }
}
