package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory holds a value per object UID: progress that neither the API server nor a cache
// shows yet. A restart loses it, so what it records must be safe to repeat. It is safe
// for concurrent use.
type Memory[T any] struct {
	mu     sync.Mutex
	values map[types.UID]T
}

// NewMemory returns an empty Memory.
func NewMemory[T any]() *Memory[T] {
	return &Memory[T]{values: map[types.UID]T{}}
}

// Get returns the value of the object, the zero value if there is none.
func (m *Memory[T]) Get(uid types.UID) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[uid]
}

// Update changes the value of the object.
func (m *Memory[T]) Update(uid types.UID, change func(*T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value := m.values[uid]
	change(&value)
	m.values[uid] = value
}

// Forget drops the value of a deleted object.
func (m *Memory[T]) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, uid)
}
