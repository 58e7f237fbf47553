package faultproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// chunk is the largest number of bytes that are read at once.
	chunk = 64 << 10
	// underway is the largest number of chunks on the way in one direction.
	underway = 1024
)

// DelayProxy forwards connections to a target and delays each packet, as a network does. It does not
// look into what it forwards, so a TLS connection stays one between its two ends.
type DelayProxy struct {
	listener net.Listener
	target   string
	each     time.Duration

	mu    sync.Mutex
	open  map[net.Conn]bool
	ended bool
	group sync.WaitGroup
}

// StartDelay listens on a loopback port and delays what passes by each, in both directions.
func StartDelay(target string, each time.Duration) (*DelayProxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start delay proxy: %w", err)
	}
	p := &DelayProxy{listener: listener, target: target, each: each, open: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	return p, nil
}

// Address returns HOST:PORT of the proxy.
func (p *DelayProxy) Address() string { return p.listener.Addr().String() }

// Close ends all connections.
func (p *DelayProxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for connection := range p.open {
		_ = connection.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
	if err != nil {
		return fmt.Errorf("close delay proxy: %w", err)
	}
	return nil
}

// accept serves connections until Close.
func (p *DelayProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.group.Go(func() { p.serve(client) })
		}
	}
}

// serve connects the client with the target until either ends.
func (p *DelayProxy) serve(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			forward(to, from, p.each)
			_ = to.(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// keep remembers the connection for Close. It returns false after Close.
func (p *DelayProxy) keep(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[connection] = true
	return !p.ended
}

// drop closes the connection.
func (p *DelayProxy) drop(connection net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, connection)
	_ = connection.Close()
}

// packet is what was read at once, and when it arrives.
type packet struct {
	data []byte
	due  time.Time
}

// forward copies bytes, each of them later by the delay. It reads on while packets are on the
// way: the delay does not limit the rate.
func forward(to io.Writer, from io.Reader, each time.Duration) {
	packets := make(chan packet, underway)
	go func() {
		defer close(packets)
		buffer := make([]byte, chunk)
		for {
			size, err := from.Read(buffer)
			if size > 0 {
				packets <- packet{data: bytes.Clone(buffer[:size]), due: time.Now().Add(each)}
			}
			if err != nil {
				return
			}
		}
	}()
	failed := false
	for p := range packets { // to the end, so that the reader is never blocked
		if failed {
			continue
		}
		if wait := time.Until(p.due); wait > 0 {
			<-time.After(wait)
		}
		_, err := to.Write(p.data)
		failed = err != nil
	}
}
