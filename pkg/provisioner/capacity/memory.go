package capacity

import (
	"sync"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

// memory holds the driver's last answers, until there is a reason to ask it again.
// A reason that comes while the driver is being asked counts: the answer may be of
// before. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	answers map[string]capacity.Answer
	turns   map[string]uint64
}

func newMemory() *memory {
	return &memory{answers: map[string]capacity.Answer{}, turns: map[string]uint64{}}
}

// answer returns the last answer, false if the driver is to be asked.
func (m *memory) answer(key string) (capacity.Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, known := m.answers[key]
	return answer, known
}

// forget has the driver asked again.
func (m *memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[key]++
	delete(m.answers, key)
}

// turn counts the reasons to ask.
func (m *memory) turn(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turns[key]
}

// remember keeps the answer to what was asked in that turn, unless there was a
// reason to ask again since.
func (m *memory) remember(key string, turn uint64, answer capacity.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turns[key] == turn {
		m.answers[key] = answer
	}
}

// drop forgets an item that is no longer wanted.
func (m *memory) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.answers, key)
	delete(m.turns, key)
}
