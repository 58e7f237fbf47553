package nodeterminator

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/exeunt-io/exeunt/pkg/termination/disruption"
)

// listTimeout is how long a node keeps its place while its pods are listed.
const listTimeout = 5 * time.Second

// wakes are the nodes that were woken for a free place, and the pauses after deletions that failed.
type wakes struct {
	// woken nodes have a place each, until they are reconciled and their pods are listed.
	woken map[string]bool
	// last was woken last. The one after it by name is next: one claim that cannot be deleted keeps no others.
	last string
	// failed counts deletions that failed since one succeeded, pauses are those that have not ended.
	failed workqueue.TypedRateLimiter[string]
	pauses int
}

func newWakes() wakes {
	return wakes{woken: map[string]bool{},
		failed: workqueue.NewTypedItemExponentialFailureRateLimiter[string](backoff.Initial, backoff.Max)}
}

// freeLocked returns how many places this node may take, with the mutex of the disruptions.
func (c *Controller) freeLocked(name string) int {
	d := c.disruptions
	if d.pauses > 0 {
		return 0
	}
	taken := len(c.terminatingLocked(name)) + len(d.woken)
	if d.woken[name] {
		taken--
	}
	return c.MaxDisrupted - taken
}

// enqueueWaiting wakes as many of the nodes that wait until another one ended as there are free places.
func (c *Controller) enqueueWaiting() {
	d := c.disruptions
	d.mu.Lock()
	defer d.mu.Unlock()
	free := 0
	if len(d.waits) > 0 {
		free = c.freeLocked("")
	}
	if free <= 0 {
		return
	}
	names := slices.Sorted(maps.Keys(d.waits))
	names = slices.DeleteFunc(names, func(name string) bool { return d.waits[name] != disruption.OthersTerminate })
	after, _ := slices.BinarySearch(names, d.last+"\x00")
	names = slices.Concat(names[after:], names[:after])
	for _, name := range names[:min(len(names), free)] {
		delete(d.waits, name) // it waits again if it finds no place
		d.woken[name], d.last = true, name
		c.loop.Enqueue(name)
	}
}

// takePlace takes a free place for the node until it is reconciled.
func (c *Controller) takePlace(name string) bool {
	d := c.disruptions
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.freeLocked(name) <= 0 {
		return false
	}
	d.woken[name] = true
	return true
}

// passOn frees the place of a node that did not take it. A node whose pods are being listed keeps its place: else the
// pods of all nodes that wait would be listed for it.
func (c *Controller) passOn(name string) {
	d := c.disruptions
	d.mu.Lock()
	woken := d.woken[name] && !time.Now().Before(d.looks[name])
	if woken {
		delete(d.woken, name)
	}
	d.mu.Unlock()
	if woken {
		c.enqueueWaiting()
	}
}

// pauseDisruptions has all nodes wait after a deletion that failed: what refuses one claim refuses the next one, too.
// The pause grows until a deletion succeeds.
func (c *Controller) pauseDisruptions() {
	d := c.disruptions
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pauses++
	time.AfterFunc(d.failed.When(""), func() {
		d.mu.Lock()
		d.pauses--
		d.mu.Unlock()
		c.enqueueWaiting()
	})
}

// isPaused reports whether nodes wait because a deletion failed.
func (d *disruptions) isPaused() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pauses > 0
}
