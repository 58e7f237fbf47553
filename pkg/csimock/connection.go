package csimock

import (
	"net"
	"sync"
)

// connections are the open connections of clients.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// drop closes all connections, like a failing network.
func (c *connections) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for connection := range c.open {
		_ = connection.Close() // the server sees the error
	}
	clear(c.open)
}

func (c *connections) add(connection net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]struct{}{}
	}
	c.open[connection] = struct{}{}
}

func (c *connections) remove(connection net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, connection)
}

// countingListener records its open connections.
type countingListener struct {
	net.Listener
	open *connections
}

// Accept waits for the next connection.
func (l *countingListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	connection := &countedConnection{Conn: accepted, open: l.open}
	l.open.add(accepted)
	return connection, nil
}

// countedConnection is a connection that is removed from the record when it is closed.
type countedConnection struct {
	net.Conn
	open *connections
}

// Close closes the connection.
func (c *countedConnection) Close() error {
	c.open.remove(c.Conn)
	return c.Conn.Close()
}
