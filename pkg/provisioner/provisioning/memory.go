package provisioning

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// memory is what is known of claims and their volumes beyond the API server, by the
// claim's UID. What a restart must not forget is in the journal, too.
type memory struct {
	mu      sync.Mutex
	records map[types.UID]claimRecord
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

// claimRecord is what is known of one claim.
type claimRecord struct {
	creation provision.Creation
	// entry is what the journal has, stored the request of a durable entry. Superseded
	// are earlier requests that were never answered.
	entry      provision.Entry
	stored     *plan
	superseded []journal.Request
	// untrusted is why an inherited entry proves nothing of what happened since, "" for a
	// trusted entry.
	untrusted string
	// resumed: the entry is still among the unresolved ones.
	resumed bool
	// bypass is why calls for the claim have no entry, "" if they have one.
	bypass string
	// claim is as it was at the last request, should it vanish.
	claim *v1.PersistentVolumeClaim
	// plan is the last request, node its selected node. Alternatives counts the tries
	// with superseded requests.
	plan         *plan
	node         string
	alternatives int
	// volume is the created volume that is not recorded yet; handle is its handle, shown
	// the same for logs and events; unusable is why it cannot serve the claim.
	volume                  *v1.PersistentVolume
	handle, shown, unusable string
	// unfit is a node that is gone or full.
	unfit string
	// nameConflict: another volume has the name.
	nameConflict bool
	// requested: this process called the driver. Recorded: a PersistentVolume of the
	// claim's own name was written or seen.
	requested, recorded bool
	// saved: this process wrote the PersistentVolume, at savedAt; seen: the cache has it, or
	// had it.
	saved, seen bool
	savedAt     time.Time
	// volumeEvents counts events of a PersistentVolume of the claim's own name.
	volumeEvents int
	// openedAt is since when the last request is open.
	openedAt time.Time
	// failedAt is when the driver first reported that there is no volume, unresolvedAt since when only
	// an administrator can find out about it, and unresolved why.
	failedAt, unresolvedAt time.Time
	unresolved             string
}

func newMemory() *memory {
	return &memory{records: map[types.UID]claimRecord{}, subjects: map[string]subject{}, handles: map[string]types.UID{}}
}

func (m *memory) of(claim types.UID) (claimRecord, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.records[claim]
	return r, known
}

// forgetVolume notes that no volume is unrecorded any more.
func (r *claimRecord) forgetVolume() {
	r.creation = provision.NotRequested
	r.volume, r.plan, r.unusable, r.handle, r.shown = nil, nil, "", "", ""
	r.unresolved, r.unresolvedAt, r.failedAt, r.alternatives = "", time.Time{}, time.Time{}, 0
}

// forgetEntry notes that the journal has no entry any more.
func (r *claimRecord) forgetEntry() {
	r.entry, r.stored, r.superseded, r.resumed = provision.NoEntry, nil, nil, false
}

// note changes what is known of the claim.
func (m *memory) note(s subject, volume string, change func(*claimRecord)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[s.uid]
	change(&r)
	m.records[s.uid], m.subjects[volume] = r, s
}

func (m *memory) forget(claim types.UID, volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, claim)
	if m.subjects[volume].uid == claim {
		delete(m.subjects, volume)
	}
}

// reserve returns false if another claim has a volume with the handle that the
// cache of volumes does not have yet.
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

// saw records an event of the PersistentVolume with the name, whose claimRef has the
// UID. It returns the key of the claim with that volume name, "" if there is no record
// of it, and whether the claim must be reconciled. A created volume that is not saved
// yet counts as open again: the event may be of its PersistentVolume, already deleted.
func (m *memory) saw(volume string, claim types.UID) (key string, work bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.subjects[volume]
	if !known {
		return "", false
	}
	r := m.records[s.uid]
	r.seen, r.nameConflict = true, false
	if claim == s.uid {
		work = r.entry != provision.NoEntry
		r.recorded = true
		r.volumeEvents++
		if r.creation == provision.Created && r.entry != provision.Discarding {
			r.creation, r.volume = provision.Requested, nil
		}
	}
	m.records[s.uid] = r
	return s.key, work
}
