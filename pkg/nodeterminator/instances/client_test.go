package instances

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// verbs are the calls of a client.
func verbs(c Provider) map[string]func(context.Context, Instance) (State, error) {
	return map[string]func(context.Context, Instance) (State, error){"get": c.Get, "stop": c.Stop, "delete": c.Delete}
}

func TestEveryCallReturnsTheProvidersState(t *testing.T) {
	var called string
	var got Instance
	record := func(verb string) func(context.Context, Instance) (State, error) {
		return func(_ context.Context, i Instance) (State, error) {
			called, got = verb, i
			return State(i.ProviderID), nil
		}
	}
	client := served(t, Handler(provider{record("get"), record("stop"), record("delete")}))
	for verb, call := range verbs(client) {
		for _, state := range states {
			sent := machine
			sent.ProviderID = string(state)
			if answered, err := call(t.Context(), sent); err != nil || answered != state {
				t.Errorf("%s = %s, %v, want %s", verb, answered, err, state)
			}
			if called != verb || !reflect.DeepEqual(got, sent) {
				t.Errorf("the provider got %s of %+v, want %s of %+v", called, got, verb, sent)
			}
		}
	}
}

func TestProvidersErrorReachesCaller(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Error
	}{
		"plain": {errors.New("no credentials"), Error{Message: "no credentials"}},
		"unsupported": {&Error{Message: "disks would go", Unsupported: true},
			Error{Message: "disks would go", Unsupported: true}},
		"throttled": {&Error{Message: "slow down", RetryAfter: 7 * time.Second},
			Error{Message: "slow down", RetryAfter: 7 * time.Second}},
		"wrapped": {fmt.Errorf("call: %w", &Error{Message: "slow down", RetryAfter: 1500 * time.Millisecond}),
			Error{Message: "call: slow down", RetryAfter: 2 * time.Second}},
		"many lines": {errors.New("\x1b[2Jone\ntwo\u202e"), Error{Message: "[2Jone two"}},
		"empty":      {&Error{}, Error{Message: "status 500 without a message"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := served(t, Handler(always("", tc.err)))
			for verb, call := range verbs(client) {
				_, err := call(t.Context(), machine)
				var said *Error
				if !errors.As(err, &said) || *said != tc.want {
					t.Errorf("%s: %+v, want %+v", verb, said, tc.want)
				}
				checkSentence(t, err, verb, "mock://instance-0", "mock-0", tc.want.Message)
			}
		})
	}
}

func TestLongMessageIsCut(t *testing.T) {
	client := served(t, Handler(always("", errors.New(strings.Repeat("ü", 100_000)))))
	_, err := client.Stop(t.Context(), machine)
	var said *Error
	if !errors.As(err, &said) || len(said.Message) > maxMessage || len(said.Message) < maxMessage-4 ||
		!strings.HasSuffix(said.Message, "ü...") {
		t.Errorf("the error is %v", err)
	}
}

func TestWrongAnswerIsOneSentence(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"HTML":               {200, "<!DOCTYPE html><html>Welcome to nginx!</html>", "HTML"},
		"unknown state":      {200, `{"state":"Pau\nsed"}`, "Pau sed"},
		"no state":           {200, `{}`, "without a state"},
		"empty body":         {200, "", "empty body"},
		"other JSON":         {200, `["Off"]`, "JSON of the protocol"},
		"cut JSON":           {200, `{"state":"Off"`, "JSON of the protocol"},
		"huge body":          {200, `{"state":"Off"}` + strings.Repeat(" ", maxBody), "1 MiB"},
		"redirection":        {302, `{"state":"Off"}`, "302"},
		"another success":    {201, `{"state":"Off"}`, "201"},
		"lower case of Off":  {200, `{"state":"off"}`, `"off"`},
		"HTML with an error": {404, "<html>nothing here</html>", "HTML and status 404"},
		"error as a text":    {500, "Internal\nError", "Internal Error"},
		"empty error":        {500, "", "status 500 without a message"},
		"error and state":    {200, `{"state":"Off","error":"could not ask"}`, "could not ask"},
	} {
		t.Run(name, func(t *testing.T) {
			client := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/v1/other")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			state, err := client.Get(t.Context(), machine)
			if state != "" {
				t.Errorf("the state is %s, want none", state)
			}
			checkSentence(t, err, "get", "mock-0", tc.want)
			var said *Error
			if !errors.As(err, &said) {
				checkSentence(t, err, client.socket, "is it the right socket")
			}
		})
	}
}

func TestNoHTTPAnswerIsOneSentence(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){
		"closed":    func(net.Conn) {},
		"other":     func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\r\n") },
		"cut":       func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{") },
		"wrong TLS": func(c net.Conn) { _, _ = c.Write([]byte{0x15, 3, 1, 0, 2, 2, 0x16}) },
	} {
		t.Run(name, func(t *testing.T) {
			client := raw(t, answer)
			state, err := client.Get(t.Context(), machine)
			if state != "" {
				t.Errorf("the state is %s, want none", state)
			}
			checkSentence(t, err, client.socket, "read its log")
		})
	}
}

func TestHangingProgramIsOneSentence(t *testing.T) {
	client := served(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	client.timeout = 50 * time.Millisecond
	_, err := client.Stop(t.Context(), machine)
	checkSentence(t, err, client.socket, "did not answer in time", "read its log")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no missed deadline", err)
	}
	client.timeout = patience
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = client.Stop(limited, machine)
	checkSentence(t, err, client.socket, "did not answer in time", "read its log")
	if callTimeout != time.Minute {
		t.Errorf("a call may take %v, want a minute", callTimeout)
	}
}

func TestCanceledCallEndsOnBothSides(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	client := served(t, Handler(provider{stop: func(ctx context.Context, _ Instance) (State, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}}))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { _, err := client.Stop(ctx, machine); result <- err }()
	receive(t, began, "the call")
	cancel()
	err := receive(t, result, "the client")
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "in time") {
		t.Errorf("the canceled call returns %v", err)
	}
	receive(t, ended, "the end of the provider's call")
}

// crowd is a program that answers once it may.
type crowd struct {
	arrived chan string
	release chan struct{}
	mutex   sync.Mutex
	here    int
	most    int
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mutex.Lock()
	c.here++
	c.most = max(c.most, c.here)
	c.mutex.Unlock()
	c.arrived <- r.URL.Path
	select {
	case <-c.release:
	case <-r.Context().Done():
	}
	c.mutex.Lock()
	c.here--
	c.mutex.Unlock()
	_, _ = io.WriteString(w, `{"state":"Stopping"}`)
}

// start makes n calls, and returns how they end.
func start(t *testing.T, n int, call func(context.Context, Instance) (State, error)) <-chan error {
	results := make(chan error, n)
	for range n {
		go func() { _, err := call(t.Context(), machine); results <- err }()
	}
	return results
}

func TestStopNeverWaitsBehindGetOrDelete(t *testing.T) {
	program := &crowd{arrived: make(chan string, 1000), release: make(chan struct{})}
	client := served(t, program)
	client.deleteWait = patience
	gets, deletes := start(t, 100, client.Get), start(t, 100, client.Delete)
	for range lane {
		receive(t, program.arrived, "the first calls")
	}
	stops := start(t, lane, client.Stop) // while 200 calls hang or wait
	for range lane {
		if path := receive(t, program.arrived, "each Stop"); path != "/v1/stop" {
			t.Errorf("%s came before a Stop", path)
		}
	}
	close(program.release)
	for range 100 {
		for _, results := range []<-chan error{gets, deletes} {
			if err := receive(t, results, "the end of a call"); err != nil {
				t.Error(err)
			}
		}
	}
	for range lane {
		if err := receive(t, stops, "the end of a Stop"); err != nil {
			t.Error(err)
		}
	}
}

func TestAtMost64CallsAreInFlight(t *testing.T) {
	program := &crowd{arrived: make(chan string, 1000), release: make(chan struct{})}
	client := served(t, program)
	stops := start(t, 300, client.Stop)
	for range 64 { // without other calls the Stops have both lanes
		receive(t, program.arrived, "64 calls")
	}
	gets := start(t, 100, client.Get)
	if room := cap(client.stops) + cap(client.shared); room != 64 {
		t.Errorf("%d calls may be in flight, want 64", room)
	}
	close(program.release)
	for range 300 {
		if err := receive(t, stops, "the end of a Stop"); err != nil {
			t.Error(err)
		}
	}
	for range 100 {
		if err := receive(t, gets, "the end of a Get"); err != nil {
			t.Error(err)
		}
	}
	if program.most != 64 {
		t.Errorf("at most %d calls were in flight, want 64", program.most)
	}
	if len(client.stops)+len(client.shared) != 0 {
		t.Error("calls that have ended hold their place")
	}
}

func TestCallBehindHangingCallsIsOneSentence(t *testing.T) {
	program := &crowd{arrived: make(chan string, 1000), release: make(chan struct{})}
	client := served(t, program)
	hanging := start(t, lane, client.Get)
	for range lane {
		receive(t, program.arrived, "the hanging calls")
	}
	late := *client
	late.timeout = 50 * time.Millisecond
	_, err := late.Get(t.Context(), machine)
	checkSentence(t, err, client.socket, "answered no earlier call in time")
	late = *client
	late.deleteWait = 50 * time.Millisecond // what was read before a Delete gets old
	_, err = late.Delete(t.Context(), machine)
	checkSentence(t, err, client.socket, "answered no earlier call in time")
	close(program.release)
	for range lane {
		if err := receive(t, hanging, "the end of a call"); err != nil {
			t.Error(err)
		}
	}
}

func TestProgramMayStartLaterAndRestart(t *testing.T) {
	path := filepath.Join(directory(t), "i.sock")
	client := opened(t, path)
	for _, state := range []State{Running, Off} {
		_, err := client.Get(t.Context(), machine)
		checkSentence(t, err, path, "does not exist", "start the program")
		end := serve(t, path, Handler(always(state, nil)))
		if got, err := client.Get(t.Context(), machine); err != nil || got != state {
			t.Errorf("Get = %s, %v, want %s", got, err, state)
		}
		end()
	}
}
