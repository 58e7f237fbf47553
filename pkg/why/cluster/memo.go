package cluster

import "sync"

// memo remembers answers by key, and computes each once.
type memo struct{ answers sync.Map }

// remembered is an answer, and what could not be read for it.
type remembered struct {
	value any
	notes []string
}

// remember returns the answer of the key, computed by read at the first call. Each caller notes what could
// not be read for the answer.
func remember[T any](r *Reader, key string, read func(r *Reader) T) T {
	once, _ := r.memory.answers.LoadOrStore(key, sync.OnceValue(func() remembered {
		scope := &Reader{connection: r.connection}
		value := read(scope)
		return remembered{value, scope.Incomplete()}
	}))
	found := once.(func() remembered)()
	for _, note := range found.notes {
		r.note(note)
	}
	return found.value.(T)
}

// recall returns the answer of the key if it was asked for, and waits for an answer under way.
func recall[T any](r *Reader, key string) (answer T, known bool) {
	once, known := r.memory.answers.Load(key)
	if !known {
		return answer, false
	}
	return once.(func() remembered)().value.(T), true
}

// Remember returns what is derived from the cluster under the key, computed by read at the
// first call with a Reader of the cluster.
func Remember[T any](r *Reader, key string, read func(r *Reader) T) T {
	return remember(r, "derived "+key, read)
}
