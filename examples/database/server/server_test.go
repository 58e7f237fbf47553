package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

const limit = 30 * time.Second

// running is a server whose Serve has not been waited for.
type running struct {
	*Server
	t     *testing.T
	ended chan error
}

func run(t *testing.T) running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := running{New(listener), t, make(chan error, 1)}
	go func() { s.ended <- s.Serve() }()
	t.Cleanup(s.Close)
	return s
}

// client is a connection to the server.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func (s running) dial() client {
	s.t.Helper()
	connection, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := connection.SetDeadline(time.Now().Add(limit)); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = connection.Close() })
	return client{s.t, connection, bufio.NewReader(connection)}
}

// says sends a line, if it is not empty, and wants an answer.
func (c client) says(line, want string) {
	c.t.Helper()
	if line != "" {
		if _, err := fmt.Fprintln(c, line); err != nil {
			c.t.Fatal(err)
		}
	}
	if got, err := c.lines.ReadString('\n'); err != nil || got != want+"\n" {
		c.t.Fatalf("%s: %q, %v, want %q", line, got, err, want)
	}
}

func (s running) awaitEnd() {
	s.t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Error(err)
		}
	case <-time.After(limit):
		s.t.Fatal("the server does not end")
	}
}

func TestCommittedValuesAreRead(t *testing.T) {
	s := run(t)
	writer, reader := s.dial(), s.dial()
	writer.says("begin", "OK")
	writer.says("SET a b c", "OK")
	reader.says("GET a", "")
	writer.says("COMMIT", "OK")
	reader.says("GET a", "b c")
	for _, line := range []string{"SET a x", "COMMIT", "DROP", "?"} {
		reader.says(line, "ERROR: "+line)
	}
	writer.says("BEGIN", "OK")
	writer.says("BEGIN", "ERROR: BEGIN")
}

func TestDrainingServerEndsWithItsLastSession(t *testing.T) {
	s := run(t)
	first, second := s.dial(), s.dial()
	first.says("BEGIN", "OK")
	second.says("BEGIN", "OK")
	s.Drain()
	if connection, err := net.Dial("tcp", s.listener.Addr().String()); err == nil {
		_ = connection.Close()
		t.Error("a draining server accepts a connection")
	}
	first.says("SET a b", "OK")
	first.says("COMMIT", "OK")
	_ = first.Close()
	second.says("GET a", "b")
	select {
	case err := <-s.ended:
		t.Fatalf("the server has ended before its last session: %v", err)
	default:
	}
	_ = second.Close()
	s.awaitEnd()
}

func TestClosedSessionsGetMessage(t *testing.T) {
	s := run(t)
	first, second := s.dial(), s.dial()
	first.says("BEGIN", "OK")
	second.says("BEGIN", "OK")
	s.Drain()
	s.Close()
	for _, c := range []client{first, second} {
		c.says("", Farewell)
		if _, err := c.lines.ReadByte(); err != io.EOF {
			t.Errorf("after the message: %v", err)
		}
	}
	s.awaitEnd()
}

// A client that reads nothing delays the end of the others by a moment only.
func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	here, there := net.Pipe() // without a buffer
	s := New(nobody{})
	s.begin(there)
	s.Close()
	s.sessions.Wait()
	if _, err := here.Write([]byte("x")); err == nil {
		t.Error("the connection is open")
	}
	late, connection := net.Pipe()
	go s.begin(connection)
	if line, err := bufio.NewReader(late).ReadString('\n'); err != nil || line != Farewell+"\n" {
		t.Errorf("a late connection gets %q, %v", line, err)
	}
}

// nobody is a listener without clients.
type nobody struct{ net.Listener }

func (nobody) Close() error { return nil }

// failing is a listener that accepts one connection, then fails as without file descriptors.
type failing struct {
	net.Listener
	accepted bool
}

func (f *failing) Accept() (net.Conn, error) {
	if f.accepted {
		return nil, syscall.EMFILE
	}
	f.accepted = true
	return f.Listener.Accept()
}

// A client would wait until all sessions have ended.
func TestFailedServerRefusesConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if tcp, ok := listener.(*net.TCPListener); !ok || tcp.SetDeadline(time.Now().Add(limit)) != nil {
		t.Fatal("the listener has no deadline")
	}
	s := running{New(&failing{Listener: listener}), t, make(chan error, 1)}
	go func() { s.ended <- s.Serve() }()
	s.dial().says("GET a", "")
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
	s.Close()
	if err := <-s.ended; !errors.Is(err, syscall.EMFILE) {
		t.Errorf("Serve ends with %v", err)
	}
}
