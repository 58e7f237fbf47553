package provisioning

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// memory has a record per claim UID, with facts that the API server does not have. The
// journal has the facts that must survive a restart.
type memory struct {
	mu      sync.Mutex
	records map[types.UID]claimRecord
	// subjects has the claim of each volume name.
	subjects map[string]subject
	// handles has the claim UID of each volume handle that the cache does not have yet.
	handles map[string]types.UID
}

// subject is a claim and its key in the queue.
type subject struct {
	uid types.UID
	key string
}

// claimRecord has the facts about one claim.
type claimRecord struct {
	creation provision.Creation
	// entry is the state of the journal entry; stored is the request of a durable entry;
	// superseded are earlier, unanswered requests.
	entry      provision.Entry
	stored     *plan
	superseded []journal.Request
	// resumed: a Lease for unresolved entries still has the entry.
	resumed bool
	// bypass is the reason for calls without an entry, "" for calls with an entry.
	bypass string
	// claim is the claim at the time of the last request, for use after its deletion.
	claim *v1.PersistentVolumeClaim
	// plan is the last request; node is the selected node of the request. alternatives counts the
	// calls after which another request has its turn, the last or a superseded one; noVolumes counts
	// those whose answer was that there is no volume.
	plan                    *plan
	node                    string
	alternatives, noVolumes int
	// volume is the created volume without a PersistentVolume; handle is the volume handle;
	// shown is the handle in logs and events, without secrets; unusable is the reason why
	// the claim cannot use the volume.
	volume                  *v1.PersistentVolume
	handle, shown, unusable string
	// unfit is a node without room for the volume, or a deleted node.
	unfit string
	// nameConflict: a PersistentVolume with the volume name does not refer to the claim.
	nameConflict bool
	// requested: this process called the driver; recorded: this process wrote the
	// PersistentVolume, or an event showed it.
	requested, recorded bool
	// inherited: an earlier process requested the volume.
	inherited bool
	// discarded is the volume handle in an inherited entry of a volume that was being discarded.
	discarded string
	// announced: the entry says that a PersistentVolume may exist.
	// published: it may, by a write of this process without an answer, or of an earlier process.
	// appeared: an event showed the PersistentVolume after the request for a waiting claim began.
	announced, published, appeared bool
	// saved: this process wrote the PersistentVolume, at savedAt; seen: an event showed a
	// PersistentVolume with the volume name.
	saved, seen bool
	savedAt     time.Time
	// writtenAt is the time of the last write of the PersistentVolume without an answer, and of the
	// takeover of an entry whose earlier process may have written one.
	writtenAt time.Time
	// volumeEvents counts the events of the claim's PersistentVolume.
	volumeEvents int
	// openedAt is the time since which the outcome of the last request is unknown.
	openedAt time.Time
	// failedAt is the time since which every request had the answer that there is no volume. Since unresolvedAt,
	// only an administrator can find out whether a volume exists; unresolved is the reason.
	failedAt, unresolvedAt time.Time
	unresolved             string
}

func newMemory() *memory {
	return &memory{records: map[types.UID]claimRecord{}, subjects: map[string]subject{}, handles: map[string]types.UID{}}
}

func (m *memory) lookup(claim types.UID) (claimRecord, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.records[claim]
	return r, known
}

// mayBeKept reports whether a PersistentVolume may have recorded the volume of the last request, and be gone again: users
// who want to keep a volume also remove the finalizer by hand.
func (r *claimRecord) mayBeKept() bool {
	return r.published || r.appeared && r.plan != nil
}

// forgetVolume resets the facts about the request and the created volume.
func (r *claimRecord) forgetVolume() {
	r.creation = provision.NotRequested
	r.volume, r.plan, r.unusable, r.handle, r.shown, r.bypass = nil, nil, "", "", "", ""
	r.unresolved, r.unresolvedAt, r.failedAt = "", time.Time{}, time.Time{}
	r.alternatives, r.noVolumes = 0, 0
}

// forgetEntry resets the facts about the journal entry.
func (r *claimRecord) forgetEntry() {
	r.entry, r.stored, r.superseded, r.resumed = provision.NoEntry, nil, nil, false
	r.announced, r.discarded = false, ""
}

// update changes the record of the claim.
func (m *memory) update(s subject, volume string, change func(*claimRecord)) {
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

// reserve reserves the volume handle for the claim until the cache has the volume. It
// returns false if the handle is reserved for another claim.
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

// recordVolumeEvent records an event of a PersistentVolume, by its name and the UID of its
// claimRef. It returns the key of the claim with the volume name, "" without a record, and
// whether the claim must be reconciled. The outcome of a created, unsaved volume becomes
// unknown: the event may show that its PersistentVolume came and went.
func (m *memory) recordVolumeEvent(volume string, claim types.UID) (key string, work bool) {
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
		r.recorded, r.appeared = true, true
		r.volumeEvents++
		if r.creation == provision.Created && r.entry != provision.Discarding {
			r.creation, r.volume, r.unusable = provision.Requested, nil, ""
		}
	}
	m.records[s.uid] = r
	return s.key, work
}
