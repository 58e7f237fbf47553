package launcher

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// faultyListener fails once, as a machine without free file descriptors does.
type faultyListener struct {
	net.Listener
	failed atomic.Bool
}

func (l *faultyListener) Accept() (net.Conn, error) {
	if l.failed.CompareAndSwap(false, true) {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestRelayServesAfterAFailedAccept(t *testing.T) {
	dir := t.TempDir()
	server, err := net.Listen("unix", filepath.Join(dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		if connection, err := server.Accept(); err == nil {
			_, _ = connection.Write([]byte("hello"))
			_ = connection.Close()
		}
	}()
	r, err := listen("unix", filepath.Join(dir, "relay"), "unix", filepath.Join(dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	r.listener = &faultyListener{Listener: r.listener}
	ended := make(chan struct{})
	go func() { r.serve(); close(ended) }()
	connection, err := net.Dial("unix", filepath.Join(dir, "relay"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(connection); err != nil || string(text) != "hello" {
		t.Errorf("the relay forwarded %q, %v", text, err)
	}
	r.close()
	<-ended
}
