package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// stormTime is the time in which the writes of a program to an object are counted.
	stormTime = 10 * time.Second
	// stormWrites is how many of them are repeated without backoff.
	stormWrites = 30
)

// storms finds writes that are repeated without backoff.
type storms struct {
	mu     sync.Mutex
	began  time.Time
	writes map[string]int
	found  map[string]int
	// most is the largest number of writes so far.
	most int
}

func newStorms() *storms { return &storms{writes: map[string]int{}, found: map[string]int{}} }

// of counts the requests of the program.
func (s *storms) of(program string, forward http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		if isWriteOfObject(r) {
			s.count(program + " writes " + r.URL.Path)
		}
		forward.ServeHTTP(response, r)
	})
}

// isWriteOfObject reports whether the request changes one object. Leases are renewed, or hold the entries of many
// claims; events are counted by their object.
func isWriteOfObject(r *http.Request) bool {
	return slices.Contains([]string{http.MethodPatch, http.MethodPut, http.MethodDelete}, r.Method) &&
		!strings.Contains(r.URL.Path, "/leases/") && !strings.Contains(r.URL.Path, "/events/")
}

func (s *storms) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.began) >= stormTime {
		s.began = time.Now()
		clear(s.writes)
	}
	s.writes[what]++
	s.most = max(s.most, s.writes[what])
	if s.writes[what] > stormWrites {
		s.found[what] = max(s.found[what], s.writes[what])
	}
}

// report returns a sentence for each storm, and the largest number of writes.
func (s *storms) report() (texts []string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(s.found)) {
		texts = append(texts, fmt.Sprintf("%s %d times in %s", what, s.found[what], stormTime))
	}
	return texts, s.most
}
