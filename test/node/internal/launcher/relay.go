package launcher

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// dialPatience bounds a connection to the API server, acceptDelay is the time after a
	// connection that could not be accepted.
	dialPatience, acceptDelay = 10 * time.Second, 100 * time.Millisecond
)

// relay forwards connections to another address.
type relay struct {
	listener        net.Listener
	network, target string
}

// listen opens a relay from an address to the target.
func listen(network, address, targetNetwork, target string) (*relay, error) {
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("open relay to the API server: %w", err)
	}
	return &relay{listener: listener, network: targetNetwork, target: target}, nil
}

// serve forwards connections until the relay is closed. Without it the node has no API
// server, so a machine that is short of files for a moment does not end it.
func (r *relay) serve() {
	for {
		connection, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "node: accept connection to the API server:", err)
			<-time.After(acceptDelay)
			continue
		}
		go r.forward(connection)
	}
}

// close closes the listener. Open connections end with the process.
func (r *relay) close() { _ = r.listener.Close() }

// forward copies both directions of a connection until one ends.
func (r *relay) forward(from net.Conn) {
	to, err := net.DialTimeout(r.network, r.target, dialPatience)
	if err != nil {
		fmt.Fprintln(os.Stderr, "node: connect to the API server:", err)
		_ = from.Close()
		return
	}
	closeBoth := sync.OnceFunc(func() {
		_ = from.Close()
		_ = to.Close()
	})
	go func() {
		_, _ = io.Copy(to, from)
		closeBoth()
	}()
	_, _ = io.Copy(from, to)
	closeBoth()
}
