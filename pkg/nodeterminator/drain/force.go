package drain

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

const (
	// lastEviction is how long a pod waits at L for the answer to its eviction.
	lastEviction = 500 * time.Millisecond
	// markTimeout bounds the condition that is set before a deletion.
	markTimeout = 900 * time.Millisecond
	// deleteTimeout bounds a deletion.
	deleteTimeout = 10 * time.Second
	// oldestView is how old the proof may be when a pod is removed: a process that was frozen wakes up anywhere.
	oldestView = 15 * time.Second
	// patience is how long a request keeps its place in the lane: those that a webhook holds must not hold all others.
	patience = time.Second
	// skipped is how long evictions at L, or conditions, are left out in a namespace where one was not answered in time.
	skipped = 30 * time.Second
	// firstRetry and lastRetry bound the time between two forced requests that were refused.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// job is a forced request for one pod.
type job struct {
	record *tracked
	action pod.Action
	// obstacle is what keeps the pod from being evicted, "" for nothing.
	obstacle pod.Reason
	forced   time.Time
	// lane is where the request has a place, nil after that.
	lane *lane
}

// free gives the place to the next request.
func (j *job) free() {
	if j.lane != nil {
		j.lane.inFlight--
		j.lane = nil
	}
}

// lane has forced requests, the earliest L first.
type lane struct {
	slots    int
	jobs     []*job
	inFlight int
}

func (l *lane) add(j *job) {
	at, _ := slices.BinarySearchFunc(l.jobs, j, func(other, added *job) int {
		if other.forced.After(added.forced) {
			return 1
		}
		return -1
	})
	j.lane = l
	l.jobs = slices.Insert(l.jobs, at, j)
}

func (l *lane) take() *job {
	if len(l.jobs) == 0 || l.inFlight >= l.slots {
		return nil
	}
	j := l.jobs[0]
	l.jobs = slices.Delete(l.jobs, 0, 1)
	l.inFlight++
	return j
}

// outcome is what came of a forced request.
type outcome struct {
	pod      *v1.Pod
	action   pod.Action
	seconds  int64
	obstacle pod.Reason
	err      error
}

// errLater: the request is not sent now, and the node is reconciled again.
var errLater = errors.New("the pod or the node has changed")

// force carries out one forced request.
func (d *Drainer) force(j *job) {
	slow := d.clock.AfterFunc(patience, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		j.free()
		d.send()
	})
	out := d.perform(j)
	slow.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	j.free()
	r, now := j.record, d.clock.Now()
	news := out.err != nil || r.shown()
	r.forcing, r.failed = false, j.action
	switch answer := resultOf(out.err); {
	case errors.Is(out.err, errLater):
		r.retry = now.Add(firstRetry)
	case answer.kind == accepted:
		r.node.accept(r, out)
	default:
		if answer.doubtful {
			r.doubted = &out
		}
		r.fail(answer, now)
	}
	r.node.settle(r)
	d.send()
	if news {
		d.notify(r.node)
	}
}

// fail notes a forced request that was refused. An API server that is away or overloaded does not count.
func (r *tracked) fail(answer result, now time.Time) {
	r.refusal = answer.text
	if answer.kind == unanswered {
		r.retry = now.Add(max(answer.hint, firstRetry))
		return
	}
	r.retry = now.Add(min(firstRetry<<min(r.failures, 10), lastRetry))
	r.failures++
	if r.failures == keptAfter && !r.gone {
		r.node.tellRefusal(r)
	}
}

// perform sends the requests of the job, one after the other.
func (d *Drainer) perform(j *job) outcome {
	p, view, err := d.current(j)
	out := outcome{pod: p, action: j.action, obstacle: j.obstacle, err: err}
	switch {
	case err != nil:
	case j.action == pod.Remove:
		if p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed {
			d.mark(p, view, true)
		}
		out.err = d.delete(j, p, 0)
	case j.action == pod.Shorten:
		out.seconds = 1
		out.err = d.delete(j, p, out.seconds)
	case j.action == pod.Evict:
		d.evictOrDelete(j, p, view, &out)
	default:
		out.seconds = view.GraceLeft(p)
		d.mark(p, view, false)
		out.err = d.delete(j, p, out.seconds)
	}
	return out
}

// evictOrDelete evicts the pod if its budgets have room, else it deletes the pod.
func (d *Drainer) evictOrDelete(j *job, p *v1.Pod, view View, out *outcome) {
	out.seconds = view.GraceLeft(p)
	answer := d.evictAtOnce(j.record, *out)
	if answer.kind == accepted {
		return
	}
	out.action, out.obstacle = pod.Delete, pod.EvictionRefused
	if answer.kind == blocked {
		out.obstacle = pod.BudgetBlocks
	}
	d.mark(p, view, false)
	// The same grace period again: an eviction without an answer may have been carried out, and with another grace
	// period the kubelet would begin anew.
	out.err = d.delete(j, p, out.seconds)
}

// evictAtOnce evicts the pod beside other evictions of its budgets, if they have room.
func (d *Drainer) evictAtOnce(r *tracked, out outcome) result {
	p := out.pod
	d.mu.Lock()
	guard, sent := d.guardOf(r), d.clock.Now()
	if sent.Before(d.noEvictions[p.Namespace]) {
		d.mu.Unlock()
		return result{kind: refused}
	}
	room := d.queue.reserve(guard)
	d.mu.Unlock()
	if !room {
		return result{kind: blocked}
	}
	ctx, cancel := context.WithTimeout(d.ctx, lastEviction)
	defer cancel()
	err := evict(ctx, d.config.Forced, p, out.seconds)
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := resultOf(err)
	r.hear(answer, err)
	r.doubt(answer, out)
	if errors.Is(err, context.DeadlineExceeded) {
		d.noEvictions[p.Namespace] = d.clock.Now().Add(skipped)
	}
	switch answer.kind {
	case blocked:
		d.queue.fill(guard, answer.hint, sent, d.clock.Now())
	case refused, unanswered:
		d.queue.release(guard)
	case accepted:
	}
	return answer
}

// current returns the pod and the view that the job is about now.
func (d *Drainer) current(j *job) (*v1.Pod, View, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, n := j.record, j.record.node
	if d.records[r.pod.UID] != r || !n.view.Drain || !n.stillNeeds(j) {
		return nil, View{}, errLater
	}
	return r.pod, n.viewNow(), nil
}

// stillNeeds reports whether the state of the pod and the proof are those that the job was made for.
func (n *Node) stillNeeds(j *job) bool {
	p, moment := j.record.pod, n.viewNow().MomentOf(j.record.pod)
	switch j.action {
	case pod.Remove:
		now := n.drainer.clock.Now()
		// While a machine is suspended, only the wall clock goes on.
		age := max(now.Sub(n.viewed), now.Round(0).Sub(n.viewed.Round(0)))
		return moment == pod.Proven && age <= oldestView && (n.view.Holds == nil || n.view.Holds()) &&
			controller.CheckLeading(n.drainer.config.Leading) == nil
	case pod.Shorten:
		return moment == pod.FromShortening
	default:
		// Others may have deleted the pod while the job waited: a second DELETE would have the kubelet count anew, and a
		// shorter grace period would cut a pod that ends in time.
		return p.DeletionTimestamp == nil && moment == pod.FromL
	}
}

// mark sets the condition DisruptionTarget. A refusal does not keep the pod: the deadline does not wait.
func (d *Drainer) mark(p *v1.Pod, view View, failed bool) {
	if !failed && (disruptedBy(p) != "" || d.skipsMark(p)) {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, markTimeout)
	defer cancel()
	message := "node-terminator: the termination of node " + p.Spec.NodeName + endOf(view)
	if err := markDisrupted(ctx, d.config.Forced, p, message, failed, view.Now); err != nil {
		klog.FromContext(d.ctx).Info("Condition DisruptionTarget was refused", "pod", nameOf(p), "err", err)
		if errors.Is(err, context.DeadlineExceeded) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.noMarks[p.Namespace] = d.clock.Now().Add(skipped)
		}
	}
}

// skipsMark reports whether the condition of a pod of this namespace was not answered in time a while ago.
func (d *Drainer) skipsMark(p *v1.Pod) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.Now().Before(d.noMarks[p.Namespace])
}

// delete deletes the pod if the job is still about it. The condition that was set before may have taken a second, in which
// the machine may have come back: a pod that is removed while its containers run is a second writer.
func (d *Drainer) delete(j *job, p *v1.Pod, seconds int64) error {
	if _, _, err := d.current(j); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(d.ctx, deleteTimeout)
	defer cancel()
	return deletePod(ctx, d.config.Forced, p, seconds)
}

// endOf says when the termination ends.
func endOf(view View) string {
	if view.Deadline.None() {
		return " has no deadline"
	}
	return " ends at " + view.Deadline.Annotation()
}
