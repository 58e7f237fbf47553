package provisioning

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// claimRecord has the facts about one claim. Each part is forgotten as a whole.
type claimRecord struct {
	claim   claimFacts
	request requestFacts
	entry   entryFacts
	disk    diskFacts
	object  objectFacts
}

// claimFacts are facts about the claim and the calls for it.
type claimFacts struct {
	// last is the claim at the time of the last call, for use after its deletion; node is the selected node that
	// the call was for; openedAt is the time since which its outcome is unknown.
	last     *v1.PersistentVolumeClaim
	node     string
	openedAt time.Time
	// requested: this process called the driver. inherited: an earlier process did.
	requested, inherited bool
	// unfit is a node without room for the volume, or a deleted node.
	unfit string
}

// requestFacts are facts about the last request, whose volume no PersistentVolume records yet.
type requestFacts struct {
	creation provision.Creation
	plan     *plan
	// bypass is the reason for calls without an entry, "" for calls with an entry.
	bypass  string
	answers answerFacts
}

// answerFacts are what the driver answered to the open requests.
type answerFacts struct {
	// noVolumes counts the answers that there is no volume; since failedAt every request had one.
	noVolumes int
	failedAt  time.Time
	// alternatives counts the calls after which another request has its turn, the last or a superseded one.
	alternatives int
	// unresolved is why only an administrator can find out whether a volume exists, since unresolvedAt.
	unresolved   string
	unresolvedAt time.Time
}

// entryFacts are facts about the journal entry.
type entryFacts struct {
	state provision.Entry
	// stored is the request of a durable entry; superseded are earlier, unanswered requests.
	stored     *plan
	superseded []journal.Request
	// resumed: a Lease for unresolved entries still has the entry.
	resumed bool
	// announced: the entry says that a PersistentVolume may exist.
	announced bool
	// discarded is the handle in an inherited entry of a volume that was being discarded.
	discarded string
}

// diskFacts are facts about a created volume without a PersistentVolume.
type diskFacts struct {
	volume *v1.PersistentVolume
	// handle is the volume handle; shown is the same for logs and events, without secrets.
	handle, shown string
	// unusable is why the claim cannot use the volume.
	unusable string
}

// objectFacts are facts about the PersistentVolume of the claim. Each begins and ends with an event or a
// write of its own, so that none follows from another.
type objectFacts struct {
	// recorded: this process wrote it, or an event showed it, at any time.
	recorded bool
	// published: it may exist by a write of this process without an answer, or of an earlier process.
	published bool
	// appeared: an event showed it after the request for a waiting claim began.
	appeared bool
	// savedAt is when this process wrote it; seen: an event showed it, or another one of the name, since that
	// write began.
	savedAt time.Time
	seen    bool
	// conflict: a PersistentVolume with the volume name does not refer to the claim.
	conflict bool
	// writtenAt is the time of the last write without an answer, and of the takeover of an entry whose
	// earlier process may have written one.
	writtenAt time.Time
	// events counts its events.
	events int
}

// mayBeKept reports whether a PersistentVolume may have recorded the volume of the last request, and be gone
// again: users who want to keep a volume also remove the finalizer by hand. A repeated request returned such a
// disk in another size, it counted as unusable, and the data was deleted (soak, seed 433484304).
func (r *claimRecord) mayBeKept() bool {
	return r.object.published || r.object.appeared && r.request.plan != nil
}

// isLongRequested reports whether the outcome of the request has been unknown for so long that a new request
// may be built. The entry keeps the old request too.
func (r *claimRecord) isLongRequested(limit time.Duration) bool {
	return r.request.creation == provision.Requested && r.entry.state == provision.Durable &&
		time.Since(r.claim.openedAt) >= limit
}

// isOverdue reports whether only an administrator could find out about the volume for longer than the limit.
func (a *answerFacts) isOverdue(limit time.Duration) bool {
	return a.unresolved != "" && time.Since(a.unresolvedAt) >= limit
}

// setUnresolved sets the reason why only an administrator can find out whether a volume
// exists, and the time since then; "" resets both.
func (a *answerFacts) setUnresolved(reason string) {
	switch {
	case reason == "":
		a.unresolvedAt = time.Time{}
	case a.unresolvedAt.IsZero():
		a.unresolvedAt = time.Now()
	}
	a.unresolved = reason
}

// count counts an answer that there is no volume, by what is known since then: each of the open requests needs
// one, and another one long after that. The next request has its turn after each of these answers, and after
// each answer that the volume is one of another request.
func (a *answerFacts) count(outcome provision.Outcome, after provision.Creation, requests int, longAgo bool) {
	noVolume := after == provision.FailedOnce && outcome == provision.NoVolume
	switch {
	case after != provision.FailedOnce:
		a.noVolumes, a.failedAt = 0, time.Time{}
	case noVolume && (longAgo || a.noVolumes < requests):
		a.noVolumes++
	}
	if after == provision.FailedOnce && a.noVolumes >= requests && a.failedAt.IsZero() {
		a.failedAt = time.Now()
	}
	if noVolume || outcome == provision.Mismatch {
		a.alternatives++
	}
}

// requests returns how many requests for the volume are open: the last one, and superseded ones.
func (e *entryFacts) requests() int { return 1 + len(e.superseded) }

// isAwaited reports whether this process wrote the PersistentVolume, and no event has shown it yet.
func (o *objectFacts) isAwaited() bool { return !o.savedAt.IsZero() && !o.seen }

// isWriteOpen reports whether a write without an answer may still take effect. A disk was discarded after such a
// write, because the claim had moved to another node; then the API server executed the write, and the claim was
// bound to a PersistentVolume without a disk.
func (o *objectFacts) isWriteOpen(limit time.Duration) bool { return time.Since(o.writtenAt) < limit }

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

func newMemory() *memory {
	return &memory{records: map[types.UID]claimRecord{}, subjects: map[string]subject{}, handles: map[string]types.UID{}}
}

func (m *memory) lookup(claim types.UID) (claimRecord, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.records[claim]
	return r, known
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

// reserve reserves the volume handle for the claim until the cache has the volume. It returns false if the handle
// is reserved for another claim: a driver that answers two claims with one handle at once, before the cache has
// either volume, would have both of them bound to one disk.
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
	r.object.seen, r.object.conflict = true, false
	if claim == s.uid {
		work = r.entry.state != provision.NoEntry
		r.object.recorded, r.object.appeared = true, true
		r.object.events++
		if r.request.creation == provision.Created && r.entry.state != provision.Discarding {
			// The object of the volume came, perhaps by an earlier write, and may be gone with its disk by now. To
			// create it again from memory would bind the claim to a disk that does not exist. The handle stays: an
			// entry that is being written as discarding now is moved to the unresolved ones with it.
			r.request.creation = provision.Requested
			r.disk.volume, r.disk.unusable = nil, ""
		}
	}
	m.records[s.uid] = r
	return s.key, work
}
