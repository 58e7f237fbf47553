package controller

import "sync"

// Turns lets one worker at a time work on what has a name, across loops. It is safe
// for concurrent use; its zero value is ready.
type Turns struct {
	mu    sync.Mutex
	taken map[string]*turn
}

type turn struct {
	sync.Mutex
	workers int // that have it or wait for it
}

// Take waits until nobody else works on the name, and returns what ends the turn.
func (t *Turns) Take(name string) (end func()) {
	t.mu.Lock()
	if t.taken == nil {
		t.taken = map[string]*turn{}
	}
	mine := t.taken[name]
	if mine == nil {
		mine = &turn{}
		t.taken[name] = mine
	}
	mine.workers++
	t.mu.Unlock()
	mine.Lock()
	return func() {
		mine.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.workers--; mine.workers == 0 {
			delete(t.taken, name)
		}
	}
}
