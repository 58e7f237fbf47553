package reclaimer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progress is what the controller remembers about a volume that still exists.
type progress struct {
	// deleted names the volume and the claim whose data the plugin deleted, in the form
	// of [plugin.DataID].
	deleted string
	// deleting: the plugin is deleting the data now.
	deleting bool
	// unchecked: the data is deleted, and it is not known yet whether the volume was given away meanwhile.
	unchecked bool
	// created is the last creation of a recycler pod, until an event shows the pod.
	created creation
	// reported are the events of the last recycler pod that were repeated on the volume.
	reported map[types.UID]bool
	// failures is the number since the last success; no attempt starts before until.
	failures int
	until    time.Time
}

// creation is a request to create a recycler pod. Its zero value is none.
type creation struct {
	// at is the time of the request.
	at time.Time
	// pod is the UID of the created pod, "" while the outcome is unknown.
	pod types.UID
}

// The shortest and the longest time between two attempts for one volume.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// backOff notes a failure. The next attempt waits, however often the volume is enqueued.
func (c *Controller) backOff(uid types.UID) {
	c.memory.Update(uid, func(p *progress) {
		wait := lastRetry
		if p.failures < 10 { // more would overflow the shift
			wait = min(lastRetry, firstRetry<<p.failures)
		}
		p.failures++
		p.until = time.Now().Add(wait)
	})
}

// remainingBackoff returns how long the next attempt still waits.
func (c *Controller) remainingBackoff(uid types.UID) time.Duration {
	return time.Until(c.memory.Get(uid).until)
}
