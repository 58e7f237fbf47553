package binding

import (
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Index knows the volumes that nobody claims and the claims that wait for one.
// It is safe for concurrent use. Its invariant: no claim waits while a volume
// that would satisfy it is neither reserved nor offered to another claim.
type Index struct {
	wake func(claim string)

	mu        sync.Mutex
	buckets   map[bucketKey]*bucket
	volumes   map[string]*candidate // by volume name
	waiters   map[string]*waiter    // by claim key
	taken     map[string]*candidate // reservation, by claim key
	offered   map[string]*candidate // volume that a claim was woken for, by claim key
	reservers map[string]string     // claim key, by volume name
}

// NewIndex returns an empty index. It calls wake with the key (namespace/name) of
// a claim that should be looked at, because a volume for it has come; wake must
// not block and must not call the index.
func NewIndex(wake func(claim string)) *Index {
	return &Index{
		wake:      wake,
		buckets:   map[bucketKey]*bucket{},
		volumes:   map[string]*candidate{},
		waiters:   map[string]*waiter{},
		taken:     map[string]*candidate{},
		offered:   map[string]*candidate{},
		reservers: map[string]string{},
	}
}

// Put makes a volume known as free, or replaces what was known of it. A volume
// that is not free (see [IsFree]) is dropped. It returns whether the volume is
// free and was known to be exactly like this.
func (x *Index) Put(volume *v1.PersistentVolume) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.volumes[volume.Name]; known != nil && IsFree(volume) && known.same(volume) {
		return true
	}
	reserver := x.reservers[volume.Name]
	x.drop(volume.Name)
	if !IsFree(volume) {
		return false
	}
	c := newCandidate(volume)
	x.volumes[c.name] = c
	x.bucket(c.key).insert(c)
	if reserver != "" {
		x.reserve(c, reserver)
		return false
	}
	x.offer(c)
	return false
}

// Drop makes the index forget a volume, for it is gone or claimed.
func (x *Index) Drop(volume string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(volume)
}

// Take reserves the volume that fits the claim best and returns its name: of those
// with the fewest access modes the smallest. Where there is none it returns "" and the claim waits: wake is called for
// it once a volume comes. A claim holds one reservation at the most, until Leave
// or until the volume is dropped. A claim whose selector has no sense neither
// holds a volume nor waits.
func (x *Index) Take(claim *v1.PersistentVolumeClaim) (string, error) {
	w, err := newWaiter(claim)
	if err != nil {
		x.Leave(claim.Namespace + "/" + claim.Name)
		return "", err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	given := x.taken[w.claim]
	x.leave(w.claim)
	c := x.bucket(w.key).smallest(w, func(c *candidate) bool { return x.reservers[c.name] == "" })
	name := ""
	if c != nil {
		x.reserve(c, w.claim)
		name = c.name
	} else {
		x.waiters[w.claim] = w
		x.bucket(w.key).await(w)
	}
	x.reoffer(w.claim)
	if given != nil && given != c {
		x.offer(given)
	}
	return name, nil
}

// Leave ends the claim's reservation or waiting; a volume that it gives up is
// offered to the next claim that it satisfies.
func (x *Index) Leave(claim string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	given := x.taken[claim]
	x.leave(claim)
	x.reoffer(claim)
	if given != nil {
		x.offer(given)
	}
}

// Len returns how many volumes are free, reserved ones included, and how many
// claims wait.
func (x *Index) Len() (volumes, claims int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.volumes), len(x.waiters)
}

func (x *Index) bucket(key bucketKey) *bucket {
	b := x.buckets[key]
	if b == nil {
		b = &bucket{}
		x.buckets[key] = b
	}
	return b
}

func (x *Index) drop(volume string) {
	c := x.volumes[volume]
	if c == nil {
		return
	}
	delete(x.volumes, volume)
	x.bucket(c.key).remove(c)
	if claim := x.reservers[volume]; claim != "" {
		delete(x.reservers, volume)
		delete(x.taken, claim)
	}
	x.forgetEmpty(c.key)
}

func (x *Index) reserve(c *candidate, claim string) {
	x.taken[claim] = c
	x.reservers[c.name] = claim
}

// leave ends waiting and reservation, without offering anything.
func (x *Index) leave(claim string) {
	if w := x.waiters[claim]; w != nil {
		delete(x.waiters, claim)
		x.bucket(w.key).forget(w)
		x.forgetEmpty(w.key)
	}
	if c := x.taken[claim]; c != nil {
		delete(x.taken, claim)
		delete(x.reservers, c.name)
	}
}

// offer wakes one waiting claim that the volume satisfies.
func (x *Index) offer(c *candidate) {
	if x.volumes[c.name] != c || x.reservers[c.name] != "" {
		return
	}
	w := x.bucket(c.key).neediest(c)
	if w == nil {
		return
	}
	delete(x.waiters, w.claim)
	x.bucket(w.key).forget(w)
	x.offered[w.claim] = c
	x.wake(w.claim)
}

// reoffer passes on the volume that a claim was woken for and did not take.
func (x *Index) reoffer(claim string) {
	c := x.offered[claim]
	delete(x.offered, claim)
	if c != nil {
		x.offer(c)
	}
}

func (x *Index) forgetEmpty(key bucketKey) {
	if b := x.buckets[key]; b != nil && b.empty() {
		delete(x.buckets, key)
	}
}
