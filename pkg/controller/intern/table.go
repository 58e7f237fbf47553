package intern

import "sync"

// Bounds of a table. Values with a longer key are unlikely to have an equal.
const (
	maxEntries = 4096
	maxKey     = 1024
)

// table returns the same value for equal keys. It holds at most the last 2*maxEntries keys
// that were looked up.
type table[T any] struct {
	mu               sync.Mutex
	recent, previous map[string]T
}

// get returns the value of the key. It calls value for a key that is not in the table.
func (t *table[T]) get(key []byte, value func() T) T {
	if len(key) > maxKey {
		return value()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.recent[string(key)]; found {
		return known
	}
	known, found := t.previous[string(key)]
	if !found {
		known = value()
	}
	t.add(string(key), known)
	return known
}

// add adds a value to the recent ones. Once these are too many, they become the previous ones.
func (t *table[T]) add(key string, value T) {
	if t.recent == nil || len(t.recent) >= maxEntries {
		t.recent, t.previous = map[string]T{}, t.recent
	}
	t.recent[key] = value
}
