package cluster

import "sync"

// memo remembers answers by key, and computes each once.
type memo struct{ answers sync.Map }

// remember returns the answer of the key, computed by read at the first call.
func remember[T any](m *memo, key string, read func() T) T {
	once, _ := m.answers.LoadOrStore(key, sync.OnceValue(func() any { return read() }))
	return once.(func() any)().(T)
}
