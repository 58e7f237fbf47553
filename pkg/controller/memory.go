package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory is what was done for objects that still exist, by UID: what the API
// server does not tell, or a cache not yet. A restart forgets it; every step is
// idempotent, so that it is only repeated. It is safe for concurrent use.
type Memory[T any] struct {
	mu    sync.Mutex
	noted map[types.UID]T
}

// NewMemory returns an empty memory.
func NewMemory[T any]() *Memory[T] {
	return &Memory[T]{noted: map[types.UID]T{}}
}

// Of returns what was noted of the object, the zero value if nothing was.
func (m *Memory[T]) Of(uid types.UID) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noted[uid]
}

// Note changes what is noted of the object.
func (m *Memory[T]) Note(uid types.UID, change func(*T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	noted := m.noted[uid]
	change(&noted)
	m.noted[uid] = noted
}

// Forget drops what was noted of an object that is gone.
func (m *Memory[T]) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.noted, uid)
}
