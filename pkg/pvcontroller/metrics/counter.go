package metrics

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// counter counts objects by kind, as events say. It remembers the kind of each object: the
// event of a deletion may have a newer version than the counted object.
type counter[K comparable] struct {
	mu      sync.Mutex
	objects map[cache.ObjectName]*count[K]
	counts  map[K]*count[K]
}

// count is the number of objects of a kind.
type count[K comparable] struct {
	kind    K
	objects int
}

func newCounter[K comparable]() *counter[K] {
	return &counter[K]{objects: map[cache.ObjectName]*count[K]{}, counts: map[K]*count[K]{}}
}

// set counts a new object, or an object that may have changed its kind.
func (c *counter[K]) set(name cache.ObjectName, kind K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if counted := c.objects[name]; counted != nil && counted.kind == kind {
		return
	}
	c.remove(name)
	now := c.counts[kind]
	if now == nil {
		now = &count[K]{kind: kind}
		c.counts[kind] = now
	}
	now.objects++
	c.objects[name] = now
}

// forget stops counting an object.
func (c *counter[K]) forget(name cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
}

func (c *counter[K]) remove(name cache.ObjectName) {
	counted := c.objects[name]
	if counted == nil {
		return
	}
	delete(c.objects, name)
	counted.objects--
	if counted.objects == 0 {
		delete(c.counts, counted.kind)
	}
}

// byKind returns how many objects of each kind exist.
func (c *counter[K]) byKind() map[K]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	numbers := make(map[K]int, len(c.counts))
	for kind, counted := range c.counts {
		numbers[kind] = counted.objects
	}
	return numbers
}
