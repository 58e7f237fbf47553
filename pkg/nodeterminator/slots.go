package nodeterminator

import (
	"slices"
	"sync"
)

// slots bound the writes of many nodes: a webhook that delays them must not take all workers.
type slots struct {
	size int
	mu   sync.Mutex
	free int
	// waiting are the nodes that found no slot, the first one first.
	waiting []string
}

func newSlots(count int) *slots { return &slots{size: count, free: count} }

// run runs the write of the node in a slot. Without a free one it returns errNoSlot, and next returns the node later.
func (s *slots) run(node string, write func() error) error {
	s.mu.Lock()
	if s.free == 0 {
		if !slices.Contains(s.waiting, node) {
			s.waiting = append(s.waiting, node)
		}
		s.mu.Unlock()
		return errNoSlot
	}
	s.free--
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free++
	}()
	return write()
}

// next returns a node that waits, if a slot is free, else "". It is called after each Reconcile: a node that needs no slot
// any more must not keep those behind it.
func (s *slots) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 || len(s.waiting) == 0 {
		return ""
	}
	node := s.waiting[0]
	s.waiting = s.waiting[1:]
	return node
}
