package launcher

import (
	"fmt"
	"io"
	"net"
	"sync"
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

// serve forwards connections until the relay is closed.
func (r *relay) serve() {
	for {
		connection, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.forward(connection)
	}
}

// close closes the listener. Open connections end with the process.
func (r *relay) close() { _ = r.listener.Close() }

// forward copies both directions of a connection until one ends.
func (r *relay) forward(from net.Conn) {
	to, err := net.Dial(r.network, r.target)
	if err != nil {
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
