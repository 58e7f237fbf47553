package controller

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Repeats delays writes whose effect does not last, since an admission webhook or another program undoes it each time.
// The same write of one object is sent three times at once, and then after pauses that double from one second to five
// minutes. A write that was not repeated for ten minutes is new, and so is one that lasted until this process changed the
// object again. The zero value is ready, and safe for concurrent use; nil pauses no write.
type Repeats struct {
	mu   sync.Mutex
	seed maphash.Seed
	// recent and earlier are the writes of the last ten to twenty minutes; rotated is when recent was begun.
	recent, earlier map[write]repeats
	rotated         time.Time
	// effects are those of the writes that were sent more than once, by object.
	effects map[types.UID]map[write][]byte
}

const (
	unpausedRepeats   = 3
	firstRepeatPause  = time.Second
	lastRepeatPause   = 5 * time.Minute
	repeatIsForgotten = 10 * time.Minute
)

// write is a hash of what a write changes, and of which object.
type write uint64

// repeats are how often a write was sent, and when it was sent last.
type repeats struct {
	count int
	last  time.Time
}

// RevertedError is the error of a write without effect, or of one that was not sent, because equal writes had no lasting
// effect.
type RevertedError struct {
	// After is the time until the write may be sent, 0 for the backoff of its loop.
	After time.Duration
}

// Error implements error. The text is the same for each pause, so that the event about it is one event.
func (e *RevertedError) Error() string {
	return "another program, such as an admission webhook, undoes this write each time; the write is repeated less and less often"
}

// Is reports that another program reverts our writes.
func (e *RevertedError) Is(target error) bool { return target == ErrTooManySteps }

// Check returns a [RevertedError] if the write has to wait. The effect is what the write changes.
func (r *Repeats) Check(uid types.UID, effect []byte) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.get(uid, effect)
	if before.count < unpausedRepeats {
		return nil
	}
	pause := lastRepeatPause
	if doubled := before.count - unpausedRepeats; doubled < 16 {
		pause = min(pause, firstRepeatPause<<doubled)
	}
	if wait := pause - time.Since(before.last); wait > 0 {
		return &RevertedError{After: wait}
	}
	return nil
}

// Record counts a write that the API server has executed.
func (r *Repeats) Record(uid types.UID, effect []byte) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.rotated) > repeatIsForgotten {
		r.rotate()
	}
	key, count := r.hash(uid, effect), r.get(uid, effect).count+1
	r.recent[key] = repeats{count: count, last: time.Now()}
	if count > 1 {
		if r.effects[uid] == nil {
			r.effects[uid] = map[write][]byte{}
		}
		r.effects[uid][key] = effect
	}
}

// rotate drops the writes of long ago. The caller holds the mutex.
func (r *Repeats) rotate() {
	r.recent, r.earlier, r.rotated = map[write]repeats{}, r.recent, time.Now()
	effects := map[types.UID]map[write][]byte{}
	for uid, known := range r.effects {
		maps.DeleteFunc(known, func(key write, _ []byte) bool { return r.earlier[key].count < 2 })
		if len(known) > 0 {
			effects[uid] = known
		}
	}
	r.effects = effects
}

// Replaced forgets the earlier writes that lasted until a write of this process changed the object from before to after:
// no other program undid them. A volume that is recycled for one claim after the other becomes Bound, Released and
// Available each time.
func (r *Repeats) Replaced(before, after metav1.Object) {
	if r == nil {
		return
	}
	r.mu.Lock()
	known := maps.Clone(r.effects[after.GetUID()])
	r.mu.Unlock()
	for key, effect := range known {
		if !lacks(before, effect) && lacks(after, effect) {
			r.forget(after.GetUID(), key)
		}
	}
}

func (r *Repeats) forget(uid types.UID, key write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.recent, key)
	delete(r.earlier, key)
	delete(r.effects[uid], key)
}

// get returns what is known of the write. The caller holds the mutex.
func (r *Repeats) get(uid types.UID, effect []byte) repeats {
	key := r.hash(uid, effect)
	known, here := r.recent[key]
	if !here {
		known = r.earlier[key]
	}
	if time.Since(known.last) > repeatIsForgotten {
		return repeats{}
	}
	return known
}

func (r *Repeats) hash(uid types.UID, effect []byte) write {
	if r.seed == (maphash.Seed{}) {
		r.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(string(uid))
	_ = h.WriteByte(0)
	_, _ = h.Write(effect)
	return write(h.Sum64())
}

// isUndone reports whether the API server has stored nothing of a write, since an admission webhook took the change back: no
// event follows, so that nothing else repeats the write. The removal of the last finalizer has no new version either.
func isUndone(answer, written metav1.Object, effect []byte) bool {
	return answer.GetResourceVersion() == written.GetResourceVersion() && lacks(answer, effect)
}

// lacks reports whether a write with the effect would change the object.
func lacks(object metav1.Object, effect []byte) bool {
	document, err := json.Marshal(object)
	if err != nil {
		return false
	}
	changed, err := apply(effect, document)
	if err != nil { // what the write removes is gone
		return false
	}
	repeated := reflect.New(reflect.TypeOf(object).Elem()).Interface() // an empty value is none
	if err := json.Unmarshal(changed, repeated); err != nil {
		return false
	}
	changed, err = json.Marshal(repeated)
	return err == nil && !jsonpatch.Equal(document, changed)
}
