package instances

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

const (
	// callTimeout is how long a call may take, with the time that it waits for others.
	callTimeout = time.Minute
	// deleteWait is how long a Delete waits for others: what its caller read of the Node and its volumes gets old.
	deleteWait = 5 * time.Second
	// lane is half of the calls in flight.
	lane = 32
)

// Client calls the program behind a socket. It is a [Provider].
//
// At most 64 calls are in flight. Get and Delete share one lane of 32. A Stop takes whichever lane has room: it never
// waits behind a Get or Delete, since they leave the other lane to Stops.
type Client struct {
	socket        string
	timeout       time.Duration
	deleteWait    time.Duration
	stops, shared chan struct{}
	http          *http.Client
}

var _ Provider = (*Client)(nil)

// Open returns a client of the program behind the socket. It refuses a socket that others may write or replace. A
// socket that does not exist yet is no error: the program may start later, and until then each call says so.
func Open(socket string) (*Client, error) {
	if socket == "" {
		return nil, errors.New("the path of the socket is empty")
	}
	path, err := filepath.Abs(socket)
	if err != nil {
		return nil, fmt.Errorf("find socket %s: %w", socket, err)
	}
	if err := check(path); err != nil && !isAbsent(err) {
		return nil, err
	}
	return newClient(path, callTimeout), nil
}

func newClient(path string, timeout time.Duration) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) }
	return &Client{
		socket:     path,
		timeout:    timeout,
		deleteWait: deleteWait,
		stops:      make(chan struct{}, lane),
		shared:     make(chan struct{}, lane),
		http: &http.Client{
			// A connection serves one call, so each call follows a check of the socket, and a restart of the program
			// breaks no idle connection.
			Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Get returns the state of the machine.
func (c *Client) Get(ctx context.Context, i Instance) (State, error) {
	return c.call(ctx, "get", i, nil, c.timeout)
}

// Stop ends the machine within a minute and keeps the disks that Kubernetes attached.
func (c *Client) Stop(ctx context.Context, i Instance) (State, error) {
	return c.call(ctx, "stop", i, c.stops, c.timeout)
}

// Delete removes the machine.
func (c *Client) Delete(ctx context.Context, i Instance) (State, error) {
	return c.call(ctx, "delete", i, nil, c.deleteWait)
}

// call sends a call once the shared lane, or its own one, has room, for which it waits.
func (c *Client) call(ctx context.Context, verb string, i Instance, own chan struct{},
	wait time.Duration) (State, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	waiting, stopWaiting := context.WithTimeout(limited, wait)
	defer stopWaiting()
	select {
	case c.shared <- struct{}{}:
		defer func() { <-c.shared }()
	case own <- struct{}{}:
		defer func() { <-own }()
	case <-waiting.Done():
		return "", wrap(verb, i, c.ended(ctx, waiting, "has answered no earlier call"))
	}
	state, err := c.send(limited, verb, i)
	if err != nil && limited.Err() != nil {
		err = c.ended(ctx, limited, "did not answer")
	}
	if err != nil {
		return "", wrap(verb, i, err)
	}
	return state, nil
}

// wrap names the call that failed.
func wrap(verb string, i Instance, err error) error {
	return fmt.Errorf("%s instance %q of node %s: %w", verb, cleaned(i.ProviderID), cleaned(i.Node), err)
}

// ended returns why a call was given up: its caller ended, or the program did not do in time what it should.
func (c *Client) ended(caller, limited context.Context, what string) error {
	if errors.Is(caller.Err(), context.Canceled) {
		return caller.Err()
	}
	return &failure{fmt.Sprintf("the program behind socket %s %s in time: read its log, or restart it", c.socket, what),
		limited.Err()}
}

// send sends one call and reads its answer.
func (c *Client) send(ctx context.Context, verb string, i Instance) (State, error) {
	body, err := json.Marshal(i)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://instances/v1/"+verb, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return "", c.unanswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return "", c.unanswered(err)
	}
	state, err := parseAnswer(response.StatusCode, response.Header, text)
	var said *Error
	if err != nil && !errors.As(err, &said) {
		err = fmt.Errorf("the program behind socket %s %w: is it the right socket, and does it serve the "+
			"protocol of node-terminator", c.socket, err)
	}
	return state, err
}

// unanswered returns the sentence about a call without an answer.
func (c *Client) unanswered(err error) error {
	if known := (*failure)(nil); errors.As(err, &known) {
		return known
	}
	return &failure{fmt.Sprintf("the program behind socket %s sent no HTTP answer: read its log (%s)", c.socket,
		cleaned(rootOf(err).Error())), err}
}

// rootOf returns the innermost error: those around it name a URL that does not exist.
func rootOf(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// failure is a sentence for people about the error that caused it.
type failure struct {
	sentence string
	cause    error
}

func (f *failure) Error() string { return f.sentence }
func (f *failure) Unwrap() error { return f.cause }
