package garbage

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// queue is the workqueue of a collector: the model takes the objects from it in every order.
type queue struct {
	workqueue.TypedRateLimitingInterface[types.UID]

	mu sync.Mutex
	// uids are the objects; true for one that waits for a time.
	uids map[types.UID]bool
}

func newQueue() *queue { return &queue{uids: map[types.UID]bool{}} }

func (q *queue) add(uid types.UID, later bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waits, known := q.uids[uid]; !known || waits {
		q.uids[uid] = later
	}
}

// Add adds an object that is due.
func (q *queue) Add(uid types.UID) { q.add(uid, false) }

// AddAfter adds an object that waits for a time.
func (q *queue) AddAfter(uid types.UID, _ time.Duration) { q.add(uid, true) }

// AddRateLimited adds an object that waits for a time.
func (q *queue) AddRateLimited(uid types.UID) { q.add(uid, true) }

// Forget does nothing.
func (q *queue) Forget(types.UID) {}

// ShutDown does nothing.
func (q *queue) ShutDown() {}

// take removes the object.
func (q *queue) take(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.uids, uid)
}

// elapse makes all objects due.
func (q *queue) elapse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for uid := range q.uids {
		q.uids[uid] = false
	}
}

// list returns the objects in order.
func (q *queue) list() (due, later []types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(q.uids)) {
		if q.uids[uid] {
			later = append(later, uid)
		} else {
			due = append(due, uid)
		}
	}
	return due, later
}
