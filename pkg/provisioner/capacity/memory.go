package capacity

import (
	"sync"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

// memory holds the driver's last answers until there is a reason to ask again. An answer
// that a reason came during is published and outdated: where volumes come faster than
// answers, an answer that is a moment old is better than none. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	answers map[string]capacity.Answer
	// outdated are the items whose next pass asks again.
	outdated map[string]bool
}

func newMemory() *memory {
	return &memory{answers: map[string]capacity.Answer{}, outdated: map[string]bool{}}
}

// begin drops the answer if it is outdated. A pass begins with it.
func (m *memory) begin(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outdated[key] {
		delete(m.outdated, key)
		delete(m.answers, key)
	}
}

// answer returns the last answer, and false if GetCapacity must be called.
func (m *memory) answer(key string) (capacity.Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, known := m.answers[key]
	return answer, known
}

// forget has the next pass call GetCapacity again.
func (m *memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outdated[key] = true
}

// remember stores the answer of a call.
func (m *memory) remember(key string, answer capacity.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[key] = answer
}

// drop removes an item that is no longer wanted.
func (m *memory) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.answers, key)
	delete(m.outdated, key)
}
