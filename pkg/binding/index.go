package binding

import (
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Index has the free volumes and the claims that wait for a volume. It is safe for
// concurrent use. Invariant: no claim waits while a volume that satisfies the claim is
// neither reserved nor offered to another claim.
type Index struct {
	wake func(claim string)

	mu        sync.Mutex
	buckets   map[bucketKey]*bucket
	volumes   map[string]*candidate // by volume name
	waiters   map[string]*waiter    // by claim key
	reserved  map[string]*candidate // reserved volume, by claim key
	offered   map[string]*candidate // offered volume, by claim key
	reservers map[string]string     // claim key, by volume name
}

// NewIndex returns an empty index. The index calls wake with the key (namespace/name) of a
// waiting claim for which a volume became free. wake must not block or call the index.
func NewIndex(wake func(claim string)) *Index {
	return &Index{
		wake:      wake,
		buckets:   map[bucketKey]*bucket{},
		volumes:   map[string]*candidate{},
		waiters:   map[string]*waiter{},
		reserved:  map[string]*candidate{},
		offered:   map[string]*candidate{},
		reservers: map[string]string{},
	}
}

// Update adds or replaces a free volume, and removes a volume that is not free ([isFree]). It
// reports whether the volume is free and the index already had this version.
func (x *Index) Update(volume *v1.PersistentVolume) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.volumes[volume.Name]; known != nil && isFree(volume) && known.equals(volume) {
		return true
	}
	reserver := x.reservers[volume.Name]
	x.remove(volume.Name)
	if !isFree(volume) {
		return false
	}
	c := newCandidate(volume)
	x.volumes[c.name] = c
	x.bucket(c.key).candidates.ReplaceOrInsert(c)
	if reserver != "" {
		x.reserve(c, reserver)
		return false
	}
	x.offer(c)
	return false
}

// Remove removes a volume.
func (x *Index) Remove(volume string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(volume)
}

// Reserve reserves the best volume for the claim and returns its name: the smallest of those
// with the fewest access modes. Without such a volume it returns "", and the claim waits until
// wake is called. A claim has at most one reservation, until [Index.Cancel] or
// [Index.Remove]. A claim with an invalid selector gets no volume and does not wait.
func (x *Index) Reserve(claim *v1.PersistentVolumeClaim) (string, error) {
	w, err := newWaiter(claim)
	if err != nil {
		x.Cancel(claim.Namespace + "/" + claim.Name)
		return "", err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	previous := x.reserved[w.claim]
	x.cancel(w.claim)
	c := x.bucket(w.key).bestFit(w, func(c *candidate) bool { return x.reservers[c.name] == "" })
	name := ""
	if c != nil {
		x.reserve(c, w.claim)
		name = c.name
	} else {
		x.waiters[w.claim] = w
		x.bucket(w.key).waiters.ReplaceOrInsert(w)
	}
	x.reoffer(w.claim)
	if previous != nil && previous != c {
		x.offer(previous)
	}
	return name, nil
}

// Cancel ends the reservation or the wait of the claim. The reserved volume is offered to
// another waiting claim.
func (x *Index) Cancel(claim string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	previous := x.reserved[claim]
	x.cancel(claim)
	x.reoffer(claim)
	if previous != nil {
		x.offer(previous)
	}
}

// Len returns the number of free volumes, including reserved ones, and of waiting claims.
func (x *Index) Len() (volumes, claims int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.volumes), len(x.waiters)
}

func (x *Index) bucket(key bucketKey) *bucket {
	b := x.buckets[key]
	if b == nil {
		b = newBucket()
		x.buckets[key] = b
	}
	return b
}

func (x *Index) remove(volume string) {
	c := x.volumes[volume]
	if c == nil {
		return
	}
	delete(x.volumes, volume)
	x.bucket(c.key).candidates.Delete(c)
	if claim := x.reservers[volume]; claim != "" {
		delete(x.reservers, volume)
		delete(x.reserved, claim)
	}
	x.removeEmptyBucket(c.key)
}

func (x *Index) reserve(c *candidate, claim string) {
	x.reserved[claim] = c
	x.reservers[c.name] = claim
}

// cancel ends the reservation or the wait, and offers no volume.
func (x *Index) cancel(claim string) {
	if w := x.waiters[claim]; w != nil {
		delete(x.waiters, claim)
		x.bucket(w.key).waiters.Delete(w)
		x.removeEmptyBucket(w.key)
	}
	if c := x.reserved[claim]; c != nil {
		delete(x.reserved, claim)
		delete(x.reservers, c.name)
	}
}

// offer wakes one waiting claim that the volume satisfies, unless the volume is reserved.
func (x *Index) offer(c *candidate) {
	if x.volumes[c.name] != c || x.reservers[c.name] != "" {
		return
	}
	w := x.bucket(c.key).largestWaiter(c)
	if w == nil {
		return
	}
	delete(x.waiters, w.claim)
	x.bucket(w.key).waiters.Delete(w)
	x.offered[w.claim] = c
	x.wake(w.claim)
}

// reoffer offers the volume that the claim was woken for to another claim.
func (x *Index) reoffer(claim string) {
	c := x.offered[claim]
	delete(x.offered, claim)
	if c != nil {
		x.offer(c)
	}
}

func (x *Index) removeEmptyBucket(key bucketKey) {
	if b := x.buckets[key]; b != nil && b.isEmpty() {
		delete(x.buckets, key)
	}
}
