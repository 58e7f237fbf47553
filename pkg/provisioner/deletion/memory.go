package deletion

import v1 "k8s.io/api/core/v1"

// progress has the facts about a volume until the PersistentVolume is deleted.
type progress struct {
	// volumeDeleted: DeleteVolume succeeded.
	volumeDeleted bool
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
	// goneReads is how often a reconcile may still meet the PersistentVolume in the cache
	// after its last finalizer was removed: its deletion event is on the way.
	goneReads int
}

// maxGoneReads bounds the wait for a deletion event, together with the backoff of stale keys:
// 620 ms, which a busy API server takes. A volume that is still in the cache then may have come back
// from a backup.
const maxGoneReads = 5

// awaitsEvent reports whether the PersistentVolume is gone and its deletion event has not
// arrived. It returns false after a few calls.
func (c *Controller) awaitsEvent(volume *v1.PersistentVolume) bool {
	if c.memory.Get(volume.UID).goneReads <= 0 {
		return false
	}
	c.memory.Update(volume.UID, func(p *progress) { p.goneReads-- })
	c.forgetDeleted(volume)
	return true
}

// noteGone has the next reconciles wait for the deletion event of the PersistentVolume.
func (c *Controller) noteGone(volume *v1.PersistentVolume) {
	c.memory.Update(volume.UID, func(p *progress) { p.goneReads = maxGoneReads })
}
