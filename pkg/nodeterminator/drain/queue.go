package drain

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

const (
	// retryBlocked is after which time a full budget, or a refused pod, is tried again if no budget changes.
	retryBlocked = 30 * time.Second
	// retryUnknown is the same for a blocked pod whose budgets are not known.
	retryUnknown = 5 * time.Second
	// leastRetry is the shortest time between two evictions of a refused pod, however often its budgets change.
	leastRetry = 5 * time.Second
)

// queue orders the evictions of all nodes: one in flight for each budget, the earliest L first. It sends nothing, and
// is not safe for concurrent use.
type queue struct {
	// slots is how many evictions may be in flight.
	slots   int
	waiting map[types.UID]*request
	flights map[types.UID]*request
	budgets map[string]*budget
	groups  map[string]*group
	// later has the requests that are tried again at their own time.
	later requests
	// paused is until when the API server asked for a pause.
	paused time.Time
	count  int64
}

func newQueue(slots int) *queue {
	return &queue{slots: slots, waiting: map[types.UID]*request{}, flights: map[types.UID]*request{},
		budgets: map[string]*budget{}, groups: map[string]*group{}, later: requests{before: retriesBefore}}
}

// guard is what refuses the eviction of a pod: its budgets, sorted, and whether it counts as healthy for them.
type guard struct {
	budgets []string
	healthy bool
}

func (g guard) key() string {
	key := strings.Join(g.budgets, ",")
	if !g.healthy {
		key += "!"
	}
	return key
}

// request is a pod that is to be evicted.
type request struct {
	id     types.UID
	forced time.Time // L, zero without a deadline
	guard  guard
	order  int64
	// answer is the last one to this pod alone, and retry is when the pod is tried again.
	answer pod.Answer
	sent   time.Time
	retry  time.Time
	// refused: an eviction was refused, and may take long again. Pods that were not refused go first.
	refused bool
	// reserved: a healthy pod took room of its budgets.
	reserved bool
	index    int // in its heap, -1 if it is in none
}

// group has the requests with the same guard.
type group struct {
	guard guard
	// limits are the budgets of the guard that are known: each answer looks at all groups.
	limits []*budget
	ready  requests
}

// budget is what is known of one PodDisruptionBudget.
type budget struct {
	// allowed is how many healthy pods may be evicted. unhealthy: all others may be.
	allowed   int
	unhealthy bool
	inFlight  types.UID
	// tried is when an eviction was last sent without known room, or when the first pod came.
	tried time.Time
	// changed is when the watch last showed the budget.
	changed time.Time
}

func (b *budget) room(healthy bool) bool {
	return b == nil || b.allowed > 0 || !healthy && b.unhealthy
}

// set adds the pod, or changes what is known of it. Another guard is tried at once.
func (q *queue) set(id types.UID, forced time.Time, g guard, now time.Time) {
	r := q.waiting[id]
	if r == nil {
		if r = q.flights[id]; r == nil {
			q.count++
			r = &request{id: id, order: q.count, index: -1}
		}
		q.waiting[id] = r
	}
	same := slices.Equal(r.guard.budgets, g.budgets) && r.guard.healthy == g.healthy
	if r.index >= 0 && same && r.forced.Equal(forced) || q.flights[id] != nil {
		r.forced = forced
		return
	}
	q.remove(r)
	r.forced = forced
	if !same {
		r.guard, r.answer, r.retry = g, pod.Untried, time.Time{}
	}
	q.place(r, now)
}

// place puts the request where it waits.
func (q *queue) place(r *request, now time.Time) {
	if r.answer != pod.Untried {
		heap.Push(&q.later, r)
		return
	}
	key := r.guard.key()
	g := q.groups[key]
	if g == nil {
		g = &group{guard: r.guard, limits: q.known(r.guard), ready: requests{before: forcedBefore}}
		q.groups[key] = g
		for _, b := range g.limits { // a budget that was full all day is not asked for its first pod
			if now.After(b.tried.Add(retryBlocked)) {
				b.tried = now
			}
		}
	}
	heap.Push(&g.ready, r)
}

func (q *queue) remove(r *request) {
	if r.index < 0 {
		return
	}
	if r.answer != pod.Untried {
		heap.Remove(&q.later, r.index)
		return
	}
	key := r.guard.key()
	g := q.groups[key]
	heap.Remove(&g.ready, r.index)
	if g.ready.Len() == 0 {
		delete(q.groups, key)
	}
}

// drop removes the pod. An eviction in flight still counts until it is answered.
func (q *queue) drop(id types.UID) {
	if r := q.waiting[id]; r != nil {
		q.remove(r)
		delete(q.waiting, id)
	}
}

// known returns the budgets of the guard that exist.
func (q *queue) known(g guard) []*budget {
	var found []*budget
	for _, name := range g.budgets {
		if b := q.budgets[name]; b != nil {
			found = append(found, b)
		}
	}
	return found
}

// take returns the next pod to evict now, nil if none is to be. The pod is in flight until it is answered.
func (q *queue) take(now time.Time) *request {
	if len(q.flights) >= q.slots || now.Before(q.paused) {
		return nil
	}
	q.promote(now)
	var first *group
	for _, g := range q.groups {
		if !q.opens(g).After(now) && (first == nil || forcedBefore(g.ready.list[0], first.ready.list[0])) {
			first = g
		}
	}
	if first == nil {
		return nil
	}
	r := first.ready.list[0]
	q.remove(r)
	r.sent, r.reserved = now, q.reserve(r.guard)
	q.flights[r.id] = r
	for _, b := range q.known(r.guard) {
		b.inFlight = r.id
		if !r.reserved {
			b.tried = now
		}
	}
	return r
}

// never is later than any time.
var never = time.Unix(1<<40, 0)

// opens returns from when the next pod of the group may be evicted, as far as is known.
func (q *queue) opens(g *group) time.Time {
	var at time.Time
	for _, b := range g.limits {
		if b.inFlight != "" {
			return never
		}
		if retry := b.tried.Add(retryBlocked); !b.room(g.guard.healthy) && retry.After(at) {
			at = retry
		}
	}
	return at
}

// promote returns refused pods whose time has come to their groups.
func (q *queue) promote(now time.Time) {
	for q.later.Len() > 0 && !q.later.list[0].retry.After(now) {
		r := q.later.list[0]
		q.remove(r)
		r.answer = pod.Untried
		q.place(r, now)
	}
}

// reserve takes room of each budget for a healthy pod. It returns false if one has none, and takes nothing.
func (q *queue) reserve(g guard) bool {
	budgets := q.known(g)
	for _, b := range budgets {
		if !b.room(g.healthy) {
			return false
		}
	}
	for _, b := range budgets {
		if g.healthy {
			b.allowed--
		}
	}
	return true
}

// release undoes reserve for an eviction that was not carried out.
func (q *queue) release(g guard) {
	for _, b := range q.known(g) {
		if g.healthy {
			b.allowed++
		}
	}
}

// answered ends the flight of the pod. The hint is after which time the API server wants to be asked again.
func (q *queue) answered(id types.UID, result result, now time.Time) {
	r := q.flights[id]
	delete(q.flights, id)
	for _, b := range q.known(r.guard) {
		b.inFlight = ""
	}
	if r.reserved && (result.kind == refused || result.kind == unanswered) {
		q.release(r.guard)
	}
	if result.kind == blocked {
		q.fill(r.guard, result.hint, r.sent, now)
	}
	if q.waiting[id] == nil {
		return
	}
	if result.kind == accepted {
		delete(q.waiting, id)
		return
	}
	r.answer, r.retry = q.alone(r, result, now)
	r.refused = r.refused || result.kind == refused
	q.place(r, now)
}

// alone returns the answer that counts for this pod alone, and when the pod is tried again.
func (q *queue) alone(r *request, result result, now time.Time) (pod.Answer, time.Time) {
	switch {
	case result.kind == blocked && len(q.known(r.guard)) == 0:
		return pod.Blocked, now.Add(retryUnknown)
	case result.kind == refused && result.hint > 0:
		return pod.Refused, now.Add(min(result.hint, retryBlocked))
	case result.kind == refused:
		return pod.Refused, now.Add(retryBlocked)
	}
	return pod.Untried, time.Time{}
}

// fill notes that the budgets had no room for an eviction that was sent at this time. What the watch has shown since
// counts for more: the answer may be older.
func (q *queue) fill(g guard, hint time.Duration, sent, now time.Time) {
	for _, b := range q.known(g) {
		if b.changed.After(sent) {
			continue
		}
		b.tried = now
		if hint > 0 && hint < retryBlocked {
			b.tried = now.Add(hint - retryBlocked)
		}
		b.allowed = 0
		if !g.healthy {
			b.unhealthy = false
		}
	}
}

// setBudget notes a change of the budget. Refused pods of a budget with room are tried again soon.
func (q *queue) setBudget(name string, allowed int, unhealthy bool, now time.Time) {
	b := q.budgets[name]
	if b == nil {
		b = &budget{tried: now}
		q.budgets[name] = b
		q.relimit(name)
	}
	b.allowed, b.unhealthy, b.changed = allowed, unhealthy, now
	if allowed <= 0 && !unhealthy {
		return
	}
	for _, r := range slices.Clone(q.later.list) {
		if soon := r.sent.Add(leastRetry); slices.Contains(r.guard.budgets, name) && soon.Before(r.retry) {
			r.retry = soon
			heap.Fix(&q.later, r.index)
		}
	}
	q.promote(now)
}

// dropBudget forgets the budget.
func (q *queue) dropBudget(name string) {
	delete(q.budgets, name)
	q.relimit(name)
}

// relimit notes that the budget came or went.
func (q *queue) relimit(name string) {
	for _, g := range q.groups {
		if slices.Contains(g.guard.budgets, name) {
			g.limits = q.known(g.guard)
		}
	}
}

// pause sends nothing until the time.
func (q *queue) pause(until time.Time) {
	if until.After(q.paused) {
		q.paused = until
	}
}

// status returns what is known of an eviction of the pod, and since when one is in flight.
func (q *queue) status(id types.UID, g guard, now time.Time) (pod.Answer, pod.Gate, time.Time) {
	var since time.Time
	if r := q.flights[id]; r != nil {
		since = r.sent
	} else if r := q.waiting[id]; r != nil && r.answer != pod.Untried {
		return r.answer, pod.Open, since
	}
	gate := pod.Open
	for _, b := range q.known(g) {
		switch {
		case !since.IsZero():
		case !b.room(g.healthy):
			return pod.Blocked, pod.Open, since
		case b.inFlight != "":
			gate = pod.ByBudget
		}
	}
	if gate == pod.Open && now.Before(q.paused) {
		gate = pod.ByPause
	}
	return pod.Untried, gate, since
}

// next returns when take may return a pod by time alone, the zero time if it does not.
func (q *queue) next() time.Time {
	at := never
	if q.later.Len() > 0 {
		at = q.later.list[0].retry
	}
	for _, g := range q.groups {
		if opens := q.opens(g); opens.Before(at) {
			at = opens
		}
	}
	if at.Equal(never) || len(q.flights) >= q.slots {
		return time.Time{}
	}
	if at.Before(q.paused) {
		return q.paused
	}
	return at
}
