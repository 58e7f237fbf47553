package faultproxy

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// echo starts a server that returns each line, and a proxy before it. It returns a connection
// to the proxy.
func echo(t *testing.T, each time.Duration) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(connection, connection)
				_ = connection.Close()
			}()
		}
	}()
	proxy, err := StartDelay(listener.Addr().String(), each)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	connection, err := net.Dial("tcp", proxy.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func TestEachWayIsDelayed(t *testing.T) {
	const each = 20 * time.Millisecond
	connection := echo(t, each)
	start := time.Now()
	if _, err := io.WriteString(connection, "line\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil || line != "line\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	if took := time.Since(start); took < 2*each {
		t.Errorf("the answer came after %s, want at least %s", took, 2*each)
	}
}

func TestDelayDoesNotLimitRate(t *testing.T) {
	connection := echo(t, 20*time.Millisecond)
	text := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	start := time.Now()
	go func() {
		_, _ = io.WriteString(connection, text)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(connection)
	if err != nil || string(got) != text {
		t.Fatalf("read %d bytes, %v, want %d", len(got), err, len(text))
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("1 MiB took %s", took)
	}
}
