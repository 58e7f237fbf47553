package volume

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progress is what is remembered of the reclaim of a volume that still exists.
type progress struct {
	// deleted is the volume and the claim whose data the plugin has deleted, as in
	// [reclaim.RecyclerMark].
	deleted string
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
	// recycled is the mark of the recycler pod that has succeeded.
	recycled string
	// told are the events of the last recycler pod that the volume's user was told of:
	// those of the pods before, of which there may be any number, are forgotten.
	told map[types.UID]bool
	// failures are those since the last success, and until when the next try waits.
	failures int
	until    time.Time
}

// The least and the most time between two tries of a plugin on one volume.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// postpone notes a failure: the volume is not tried again before some time has
// passed, whatever wakes it.
func (c *Controller) postpone(uid types.UID) {
	c.memory.Update(uid, func(p *progress) {
		wait := lastRetry
		if p.failures < 10 { // beyond, the shift would only overflow
			wait = min(lastRetry, firstRetry<<p.failures)
		}
		p.failures++
		p.until = time.Now().Add(wait)
	})
}

// postponed is how long the next try still waits.
func (c *Controller) postponed(uid types.UID) time.Duration {
	return time.Until(c.memory.Get(uid).until)
}
