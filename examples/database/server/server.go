// Package server is a small database server: lines of text over TCP, one session for each connection. Its data is in
// memory. What matters here is its end: [Server.Drain] accepts no more connections and waits for those that are open,
// [Server.Close] tells the rest why they end.
//
//	BEGIN         begins a transaction
//	SET key value is done with the next COMMIT
//	GET key       prints a committed value
//	COMMIT        ends the transaction
package server

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"time"
)

// Farewell is the last line of a session that the server ends.
const Farewell = "FATAL: terminating connection: the database is being deleted"

// Server serves the connections of one listener.
type Server struct {
	listener net.Listener
	sessions sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	values map[string]string
}

// New returns a server that does not accept connections yet.
func New(listener net.Listener) *Server {
	return &Server{listener: listener, open: map[net.Conn]bool{}, values: map[string]string{}}
}

// Serve accepts connections until Drain or Close, and returns once all sessions have ended.
func (s *Server) Serve() error {
	defer s.sessions.Wait()
	for {
		connection, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			s.Drain() // new clients are refused, and do not wait until all sessions have ended
			return fmt.Errorf("accept connections: %w", err)
		}
		s.begin(connection)
	}
}

// Drain accepts no more connections. Sessions go on.
func (s *Server) Drain() { _ = s.listener.Close() }

// farewellTime is how long a client may take to read the last line.
const farewellTime = 500 * time.Millisecond

// Close ends all sessions with a last line.
func (s *Server) Close() {
	s.Drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var ending sync.WaitGroup
	for connection := range s.open {
		ending.Go(func() { end(connection) })
	}
	ending.Wait()
}

func end(connection net.Conn) {
	_ = connection.SetWriteDeadline(time.Now().Add(farewellTime))
	_, _ = fmt.Fprintln(connection, Farewell)
	_ = connection.Close()
}

// begin begins a session. A connection that was accepted while the server closed ends at once.
func (s *Server) begin(connection net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		end(connection)
		return
	}
	s.open[connection] = true
	s.sessions.Go(func() {
		s.talk(connection)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, connection)
		_ = connection.Close()
	})
}

// talk answers each line until the client closes the connection.
func (s *Server) talk(connection net.Conn) {
	session := &session{server: s}
	for lines := bufio.NewScanner(connection); lines.Scan(); {
		if _, err := fmt.Fprintln(connection, session.answer(lines.Text())); err != nil {
			return
		}
	}
}

// session is one connection, whose transaction is nil between COMMIT and BEGIN.
type session struct {
	server      *Server
	transaction map[string]string
}

func (s *session) answer(line string) string {
	words := append(strings.SplitN(strings.TrimSpace(line), " ", 3), "", "")
	switch command := strings.ToUpper(words[0]); {
	case command == "GET":
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		return s.server.values[words[1]]
	case command == "BEGIN" && s.transaction == nil:
		s.transaction = map[string]string{}
	case command == "SET" && s.transaction != nil:
		s.transaction[words[1]] = words[2]
	case command == "COMMIT" && s.transaction != nil:
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		maps.Copy(s.server.values, s.transaction)
		s.transaction = nil
	default:
		return "ERROR: " + line
	}
	return "OK"
}
