package instances

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// machine is the instance of most tests.
var machine = Instance{ProviderID: "mock://instance-0", Node: "mock-0", NodeUID: "u0", Addresses: []string{"10.0.0.1"}}

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// directory returns a folder of mode 0700. Its path is short: that of a socket has 107 bytes at most.
func directory(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// serve serves the handler at the path until the test ends, or until the returned function is called.
func serve(t *testing.T, path string, handler http.Handler) (end func()) {
	t.Helper()
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	end = func() { _ = server.Close(); <-done }
	t.Cleanup(end)
	return end
}

// served returns a client of a program that answers with the handler.
func served(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	path := filepath.Join(directory(t), "i.sock")
	serve(t, path, handler)
	return opened(t, path)
}

func opened(t *testing.T, path string) *Client {
	t.Helper()
	client, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	client.timeout = patience
	return client
}

// raw serves the socket with what answer writes to each connection, HTTP or not.
func raw(t *testing.T, answer func(net.Conn)) *Client {
	t.Helper()
	path := filepath.Join(directory(t), "i.sock")
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			answer(connection)
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return opened(t, path)
}

// provider is a Provider of functions.
type provider struct {
	get, stop, remove func(ctx context.Context, i Instance) (State, error)
}

func (p provider) Get(ctx context.Context, i Instance) (State, error)    { return p.get(ctx, i) }
func (p provider) Stop(ctx context.Context, i Instance) (State, error)   { return p.stop(ctx, i) }
func (p provider) Delete(ctx context.Context, i Instance) (State, error) { return p.remove(ctx, i) }

// always is a Provider that answers each call alike.
func always(state State, err error) provider {
	answer := func(context.Context, Instance) (State, error) { return state, err }
	return provider{answer, answer, answer}
}

// checkSentence checks that an error is one line with the words.
func checkSentence(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q lacks %q", err, word)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("error %q has several lines", err)
	}
}

// receive returns a value of the channel, or fails the test.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}
