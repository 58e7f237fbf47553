package server

import (
	"strings"
	"sync"
)

// memo remembers what writes did: a model checker sends the same request to the same
// object in many states of the cluster.
type memo struct {
	mu      sync.Mutex
	effects map[write]effect
}

// remembering is the memory of all clusters but the zero one.
var remembering = &memo{}

// memoLimit is how many effects are remembered, of some kilobytes each.
const memoLimit = 1 << 16

// write is a request to an object, effect what it does.
type (
	write struct {
		object  Object
		request Request
	}
	effect struct {
		object Object
		answer Response
	}
)

func (m *memo) get(w write) (effect, bool) {
	if m == nil {
		return effect{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.effects[w]
	return e, ok
}

func (m *memo) put(w write, e effect) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects == nil || len(m.effects) >= memoLimit {
		m.effects = map[write]effect{}
	}
	m.effects[w] = e
}

// remembered answers a write of an existing object, from memory if possible.
func (c Cluster) remembered(r route, request Request, serve func() (Cluster, Response)) (Cluster, Response) {
	object, _ := c.Get(r.key())
	if object.JSON == "" || dependsOnOthers(r, request) {
		return serve()
	}
	w := write{object, request}
	if known, ok := c.memo.get(w); ok {
		if known.object == object {
			return c, known.answer
		}
		return c.With(known.object), known.answer
	}
	after, answer := serve()
	now, _ := after.Get(r.key())
	c.memo.put(w, effect{now, answer})
	return after, answer
}

// dependsOnOthers reports whether the effect may depend on other objects: the class of a
// claim says whether its size may change.
func dependsOnOthers(r route, request Request) bool {
	return r.resource.admit != nil && strings.Contains(request.Body, "resources")
}
