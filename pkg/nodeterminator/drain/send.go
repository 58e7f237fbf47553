package drain

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// evictionTimeout is longer than a webhook may take.
const evictionTimeout = 35 * time.Second

// send starts the requests that are due in both lanes, and the timer of the queue.
func (d *Drainer) send() {
	if d.closed || d.ctx.Err() != nil {
		return
	}
	for _, l := range []*lane{&d.forced, &d.repeated} {
		for j := l.take(); j != nil; j = l.take() {
			d.running.Go(func() { d.force(j) })
		}
	}
	now := d.clock.Now()
	for q := d.queue.take(now); q != nil; q = d.queue.take(now) {
		d.start(q, now)
	}
	next := d.queue.next()
	if next.IsZero() || next.Equal(d.wakeAt) {
		return
	}
	if d.wake != nil {
		d.wake.Stop()
	}
	d.wakeAt = next
	d.wake = d.clock.AfterFunc(next.Sub(now), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.wakeAt = time.Time{}
		d.send()
	})
}

// start sends an eviction.
func (d *Drainer) start(q *request, now time.Time) {
	r := d.records[q.id]
	if r == nil || !r.node.mayEvict(r.pod) {
		d.queue.drop(q.id)
		d.queue.answered(q.id, result{kind: refused}, now)
		if r != nil {
			d.notify(r.node)
		}
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, evictionTimeout)
	p, seconds := r.pod, r.node.viewNow().GraceLeft(r.pod)
	r.cancel = cancel
	d.running.Go(func() {
		defer cancel()
		d.evicted(r, p, seconds, evict(ctx, d.config.Evictions, p, seconds))
	})
}

// mayEvict reports whether the node is still drained and the pod says nothing against an eviction now: the queue has
// what the last Reconcile saw, and the annotation may have been set since.
func (n *Node) mayEvict(p *v1.Pod) bool {
	view := n.viewNow()
	return view.Drain && view.GateOf(p, pod.Tiers{Volumes: view.Volumes}) == pod.Open
}

// evicted takes the answer to an eviction before L.
func (d *Drainer) evicted(r *tracked, p *v1.Pod, seconds int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, now := resultOf(err), d.clock.Now()
	d.queue.answered(r.pod.UID, answer, now)
	if answer.kind == unanswered {
		d.queue.pause(now.Add(answer.hint))
	}
	r.cancel = nil
	news := answer.kind != r.heard && answer.kind != accepted || r.shown()
	r.hear(answer, err)
	out := outcome{pod: p, action: pod.Evict, seconds: seconds, obstacle: pod.DeadlineNear}
	r.doubt(answer, out)
	if answer.kind == accepted {
		r.node.accept(r, out)
	}
	r.node.settle(r)
	if news {
		d.notify(r.node)
	}
	d.send()
}

// isUnanswered reports whether the request ended before its answer came.
func isUnanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// hear notes what an eviction was refused for.
func (r *tracked) hear(answer result, err error) {
	r.heard = answer.kind
	switch answer.kind {
	case blocked:
		r.blockedBy, r.evictionText = budgetIn(err), ""
	case refused:
		r.evictionText = answer.text
	case accepted, unanswered:
	}
}
