package deletion

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what was done for volumes that still exist, by UID: what the API
// server does not tell, or a cache not yet. A restart forgets it; every step is
// idempotent, so that it is only repeated.
type memory struct {
	mu   sync.Mutex
	done map[types.UID]done
}

type done struct {
	// volumeDeleted: DeleteVolume succeeded.
	volumeDeleted bool
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
}

func newMemory() *memory {
	return &memory{done: map[types.UID]done{}}
}

func (m *memory) of(uid types.UID) done {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[uid]
}

func (m *memory) note(uid types.UID, change func(*done)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	noted := m.done[uid]
	change(&noted)
	m.done[uid] = noted
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.done, uid)
}
