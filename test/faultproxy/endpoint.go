package faultproxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// reopenInterval is the time between two attempts to listen again.
const reopenInterval = 50 * time.Millisecond

// endpoint is the server of a proxy, which can refuse connections for some time and then
// listen on the same address again.
type endpoint struct {
	server *http.Server
	// authority is the certificate that clients trust, as PEM.
	authority []byte

	mu          sync.Mutex
	listenOn    string
	listener    net.Listener // nil while connections are refused
	connections map[net.Conn]struct{}
}

// identity is the certificate of all proxies of this process, and its authority as PEM.
type identity struct {
	pair      tls.Certificate
	authority []byte
}

var newIdentity = sync.OnceValues(func() (identity, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return identity{}, fmt.Errorf("make certificate of the proxy: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return identity{}, fmt.Errorf("load certificate of the proxy: %w", err)
	}
	return identity{pair: pair, authority: certificate}, nil
})

func newEndpoint(handler http.Handler) (*endpoint, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	d := &endpoint{authority: identity.authority, connections: map[net.Conn]struct{}{}}
	d.server = &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{identity.pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
		ConnState:         d.note,
		ErrorLog:          log.New(io.Discard, "", 0), // handshakes that a fault has cut
	}
	return d, nil
}

// note keeps the open connections.
func (d *endpoint) note(connection net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state {
	case http.StateNew:
		d.connections[connection] = struct{}{}
		if d.listener == nil { // accepted just before the outage
			cut(connection)
		}
	case http.StateClosed, http.StateHijacked:
		delete(d.connections, connection)
	default: // still open
	}
}

// address returns host and port, or nothing before the first open.
func (d *endpoint) address() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listenOn
}

// open listens, on the former address if there is one.
func (d *endpoint) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener != nil {
		return nil
	}
	address := d.listenOn
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the program: %w", err)
	}
	d.listener, d.listenOn = listener, listener.Addr().String()
	go func() { _ = d.server.ServeTLS(listener, "", "") }() // ends when the listener is closed
	return nil
}

// refuse cuts all connections and refuses new ones until open.
func (d *endpoint) refuse() {
	d.mu.Lock()
	if d.listener != nil {
		_ = d.listener.Close() // what was not accepted is refused in any case
		d.listener = nil
	}
	d.mu.Unlock()
	d.disconnect()
}

// disconnect cuts all connections.
func (d *endpoint) disconnect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for connection := range d.connections {
		cut(connection)
	}
}

// cut closes a connection without the goodbye of TLS, as a network does.
func cut(connection net.Conn) {
	if encrypted, is := connection.(*tls.Conn); is {
		connection = encrypted.NetConn()
	}
	_ = connection.Close() // the program may have closed it
}

// close ends the server.
func (d *endpoint) close() error {
	d.refuse()
	if err := d.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the proxy: %w", err)
	}
	return nil
}
