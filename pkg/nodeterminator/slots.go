package nodeterminator

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots bound the writes of many nodes: a webhook that delays them must not take all workers.
type slots struct {
	size int
	mu   sync.Mutex
	free int
	// waiting are the nodes that found no slot, the first one first.
	waiting []string
	// running has what ends the write of a node.
	running map[string]context.CancelFunc
}

// hurried is how long a write may still take once its node is deleted.
const hurried = time.Second

func newSlots(count int) *slots {
	return &slots{size: count, free: count, running: map[string]context.CancelFunc{}}
}

// run runs the write of the node in a slot. Without a free one it returns errNoSlot, and next returns the node later.
func (s *slots) run(ctx context.Context, node string, write write) error {
	s.mu.Lock()
	if s.free == 0 {
		if !slices.Contains(s.waiting, node) {
			s.waiting = append(s.waiting, node)
		}
		s.mu.Unlock()
		return errNoSlot
	}
	ctx, cancel := context.WithCancel(ctx)
	s.free--
	s.running[node] = cancel
	s.mu.Unlock()
	defer func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free++
		delete(s.running, node)
	}()
	return write(ctx)
}

// hurry ends the write of a node soon: the node is deleted, and its worker must not wait for a webhook.
func (s *slots) hurry(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[node]; cancel != nil {
		time.AfterFunc(hurried, cancel)
	}
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
