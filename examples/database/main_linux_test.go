package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/examples/database/server"
	"github.com/exeunt-io/exeunt/examples/internal/controller"
	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == controller.GuestCommand {
		main()
	}
	os.Exit(m.Run())
}

const limit = 30 * time.Second

// started starts the server of an object as the controller does, and returns it with its port.
func started(t *testing.T) (*guest.Process, int) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	must(t, free.Close())
	dir, err := guest.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	must(t, dir.Save(guest.Record{UID: "uid", Key: "default/a"}))
	command, err := kind.Command(database(int64(port)))
	must(t, err)
	process, err := dir.Start("uid", command)
	must(t, err)
	t.Cleanup(func() { must(t, process.PowerOff(syscall.SIGKILL)) })
	return process, port
}

func database(port int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"port": port}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// session is a connection to the server.
type session struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, port int) session {
	t.Helper()
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	must(t, connection.SetDeadline(time.Now().Add(limit)))
	s := session{t, connection, bufio.NewReader(connection)}
	s.says("BEGIN", "OK") // the server has accepted the connection
	return s
}

func (s session) says(line, want string) {
	s.t.Helper()
	if line != "" {
		_, err := fmt.Fprintln(s, line)
		must(s.t, err)
	}
	if got, err := s.lines.ReadString('\n'); err != nil || got != want+"\n" {
		s.t.Fatalf("%q: %q, %v, want %q", line, got, err, want)
	}
}

func awaitEnd(t *testing.T, process *guest.Process) {
	t.Helper()
	select {
	case <-process.Ended():
	case <-time.After(limit):
		t.Fatal("the server does not end")
	}
}

// awaitRefusal waits until no connection is accepted: the signal arrives a moment later.
func awaitRefusal(t *testing.T, port int) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case errors.Is(err, syscall.ECONNRESET): // the port was closed meanwhile
			continue
		}
		must(t, err)
		_ = connection.Close()
	}
	t.Fatal("a draining server accepts connections")
}

func TestServerDrainsWhenAsked(t *testing.T) {
	process, port := started(t)
	open := dial(t, port)
	must(t, process.Signal(syscall.SIGTERM))
	awaitRefusal(t, port)
	open.says("SET a b", "OK")
	open.says("COMMIT", "OK")
	select {
	case <-process.Ended():
		t.Fatal("the server has ended before its last session")
	default:
	}
	_ = open.Close()
	awaitEnd(t, process)
}

func TestPowerOffTellsSessions(t *testing.T) {
	process, port := started(t)
	open := dial(t, port)
	must(t, process.PowerOff(kind.PowerOff...))
	open.says("", server.Farewell)
}

func TestPortIsCheckedBeforeStart(t *testing.T) {
	_, port := started(t)
	for name, object := range map[string]*unstructured.Unstructured{
		"taken":   database(int64(port)),
		"missing": {Object: map[string]any{}},
		"no port": {Object: map[string]any{"spec": map[string]any{"port": "x"}}},
	} {
		if _, err := kind.Command(object); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
