package capacity

import (
	"sync"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

// memory holds the driver's last answers until there is a reason to ask again. A reason
// that comes during a call discards the answer of the call, which may be outdated. It is
// safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	answers map[string]capacity.Answer
	// reasons counts the reasons to ask, by item.
	reasons map[string]uint64
}

func newMemory() *memory {
	return &memory{answers: map[string]capacity.Answer{}, reasons: map[string]uint64{}}
}

// answer returns the last answer, and false if GetCapacity must be called.
func (m *memory) answer(key string) (capacity.Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, known := m.answers[key]
	return answer, known
}

// forget drops the answer, so that GetCapacity is called again.
func (m *memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reasons[key]++
	delete(m.answers, key)
}

// reasonsOf returns the number of reasons to ask so far.
func (m *memory) reasonsOf(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reasons[key]
}

// remember stores the answer of a call, unless a reason to ask came since the call began
// with this number of reasons.
func (m *memory) remember(key string, reasons uint64, answer capacity.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reasons[key] == reasons {
		m.answers[key] = answer
	}
}

// drop removes an item that is no longer wanted.
func (m *memory) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.answers, key)
	delete(m.reasons, key)
}
