package cluster

import "sync"

// memo remembers answers by key, and computes each once.
type memo struct{ answers sync.Map }

// remember returns the answer of the key, computed by read at the first call.
func remember[T any](m *memo, key string, read func() T) T {
	once, _ := m.answers.LoadOrStore(key, sync.OnceValue(func() any { return read() }))
	return once.(func() any)().(T)
}

// recall returns the answer of the key if it was asked for, and waits for an answer under way.
func recall[T any](m *memo, key string) (answer T, known bool) {
	once, known := m.answers.Load(key)
	if !known {
		return answer, false
	}
	return once.(func() any)().(T), true
}

// Remember returns what is derived from the cluster under the key, computed by read at the
// first call with this Reader.
func Remember[T any](r *Reader, key string, read func() T) T {
	return remember(&r.memory, "derived "+key, read)
}
