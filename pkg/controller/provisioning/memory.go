package provisioning

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// memory is what is known of claims and their volumes that the API server does not
// tell, by the claim's UID. A restart forgets it: a claim that is held then was
// perhaps asked for.
type memory struct {
	mu      sync.Mutex
	entries map[types.UID]entry
	// subjects are claims by the name of their volume.
	subjects map[string]subject
	// handles are claims by the handle of a volume that the cache does not have yet.
	handles map[string]types.UID
}

// subject is a claim and its key in the queue.
type subject struct {
	uid types.UID
	key string
}

// entry is what is known of one claim.
type entry struct {
	// asked is what this process knows of the volume, if it is told; else the claim
	// tells: one that is held was perhaps asked for by a process before this one.
	asked provision.Asked
	told  bool
	// claim is what the driver was asked for, should the claim vanish.
	claim *v1.PersistentVolumeClaim
	// plan is what the driver may still be at.
	plan *plan
	// last is the newest request: it is repeated for a claim that no longer wants a
	// volume, though class or source are gone by now.
	last *plan
	// made is the volume that is not recorded yet, and handle what the driver calls
	// it, in logs and events shown; useless is why it never will be recorded.
	made                   *v1.PersistentVolume
	handle, shown, useless string
	// node is where the volume was asked for; unfit is a node that is gone or full.
	node, unfit string
	// taken: another volume has the name.
	taken bool
	// saved: the volume was recorded; seen: the cache has heard of it since.
	saved, seen bool
}

func newMemory() *memory {
	return &memory{entries: map[types.UID]entry{}, subjects: map[string]subject{}, handles: map[string]types.UID{}}
}

func (m *memory) of(claim types.UID) (entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[claim]
	return e, known
}

// tell notes what this process knows of the volume.
func (e *entry) tell(asked provision.Asked) { e.asked, e.told = asked, true }

// settle notes that no volume is left that only this process knows of.
func (e *entry) settle() {
	e.tell(provision.Settled)
	e.made, e.plan, e.last, e.useless = nil, nil, nil, ""
}

// note changes what is known of the claim.
func (m *memory) note(s subject, volume string, change func(*entry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[s.uid]
	change(&e)
	m.entries[s.uid], m.subjects[volume] = e, s
}

func (m *memory) forget(claim types.UID, volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, claim)
	if m.subjects[volume].uid == claim {
		delete(m.subjects, volume)
	}
}

// reserve says whether no other claim has a volume with the handle, as far as the
// cache of volumes does not tell.
func (m *memory) reserve(handle string, claim types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other, taken := m.handles[handle]; taken && other != claim {
		return false
	}
	m.handles[handle] = claim
	return true
}

// release drops the reservation: the volume is in the cache, or is gone.
func (m *memory) release(handle string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.handles, handle)
}

// saw takes note of an event of the volume with the name, and returns the key of
// its claim, "" if nothing is known of it.
func (m *memory) saw(volume string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.subjects[volume]
	if !known {
		return ""
	}
	e := m.entries[s.uid]
	e.seen, e.taken = true, false
	m.entries[s.uid] = e
	return s.key
}
