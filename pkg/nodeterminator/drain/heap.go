package drain

// requests is a heap, for package container/heap.
type requests struct {
	list   []*request
	before func(a, b *request) bool
}

// forcedBefore orders by L, requests without a deadline last, then by arrival. Pods that were refused come after all
// others: a webhook that hangs for some must not take all slots.
func forcedBefore(a, b *request) bool {
	switch {
	case a.refused != b.refused:
		return b.refused
	case a.forced.Equal(b.forced):
		return a.order < b.order
	case a.forced.IsZero(), b.forced.IsZero():
		return b.forced.IsZero()
	}
	return a.forced.Before(b.forced)
}

// retriesBefore orders by the time of the next attempt.
func retriesBefore(a, b *request) bool { return a.retry.Before(b.retry) }

// Len is of package sort.
func (r *requests) Len() int { return len(r.list) }

// Less is of package sort.
func (r *requests) Less(i, j int) bool { return r.before(r.list[i], r.list[j]) }

// Swap is of package sort.
func (r *requests) Swap(i, j int) {
	r.list[i], r.list[j] = r.list[j], r.list[i]
	r.list[i].index, r.list[j].index = i, j
}

// Push is of package container/heap.
func (r *requests) Push(x any) {
	added, is := x.(*request)
	if !is {
		return
	}
	added.index = len(r.list)
	r.list = append(r.list, added)
}

// Pop is of package container/heap.
func (r *requests) Pop() any {
	last := r.list[len(r.list)-1]
	last.index = -1
	r.list = r.list[:len(r.list)-1]
	return last
}
