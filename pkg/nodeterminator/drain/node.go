package drain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// settling is how long no new pod must appear.
const settling = 5 * time.Second

// Node is the pods of one node.
type Node struct {
	drainer *Drainer
	name    string
	uid     types.UID
	stop    context.CancelFunc
	pods    map[types.UID]*tracked
	// synced is when all pods were first known, lastNew is when a pod appeared after that. By our clock.
	synced, lastNew time.Time
	// view is that of the last Reconcile, which was at the time viewed of our clock.
	view   View
	viewed time.Time
	// looking: the node is only looked at. budgets are those of its pods then, nil if they are not known.
	looking bool
	budgets sets.Set[string]

	// counted: pods that end are counted, because the first action was written. early has pods that ended before the first
	// Reconcile, and when.
	counted bool
	early   []departure
	// unanswered are pods that are gone, and whose last request has no answer yet: it says who ended them.
	unanswered map[types.UID]*tracked
	counts     termination.Counts
	cutShort   []termination.CutShort
	// cut has the place of each pod in cutShort.
	cut map[types.UID]int
	// restored: an earlier leader worked on the node. old are the pods that it left, seen are all that this process saw.
	restored bool
	old      []termination.Left
	seen     map[types.UID]bool
}

// errForgotten: the caller holds a node that was forgotten.
var errForgotten = errors.New("the node was forgotten, or has another UID by now")

// Reconcile sends what is due to the pods of the node. It waits for no answer: each answer that changes the result
// calls Notify.
func (n *Node) Reconcile(_ context.Context, view View) (Result, error) {
	d := n.drainer
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[n.name] != n {
		return Result{}, errForgotten
	}
	n.view, n.viewed, n.looking = view, d.clock.Now(), false
	if n.synced.IsZero() {
		return Result{}, nil
	}
	n.begin()
	judged := n.judge()
	for _, j := range judged {
		n.carryOut(j)
	}
	d.send()
	return n.result(judged), nil
}

// viewNow returns the last view at the present time.
func (n *Node) viewNow() View {
	view := n.view
	view.Now = n.served(n.drainer.clock.Now())
	return view
}

// served returns a time of our clock by the clock of the view.
func (n *Node) served(own time.Time) time.Time { return n.view.Now.Add(own.Sub(n.viewed)) }

// own returns a time of the view by our clock.
func (n *Node) own(served time.Time) time.Time { return n.viewed.Add(served.Sub(n.view.Now)) }

// judged is a pod, its state and what happens to it.
type judged struct {
	*tracked
	state    pod.State
	decision pod.Decision
	guard    guard
	// next is when that changes by time alone.
	next time.Time
}

// judge decides for each pod, in the order in which they are ended.
func (n *Node) judge() []judged {
	all := make([]judged, 0, len(n.pods))
	for _, r := range n.pods {
		all = append(all, judged{tracked: r, state: pod.State{Kind: pod.KindOf(r.pod)}})
	}
	slices.SortFunc(all, func(a, b judged) int {
		return cmp.Or(cmp.Compare(a.state.Kind, b.state.Kind), cmp.Compare(nameOf(a.pod), nameOf(b.pod)),
			cmp.Compare(a.pod.UID, b.pod.UID))
	})
	tiers := pod.Tiers{Volumes: n.view.Volumes}
	for i := range all {
		n.decide(&all[i], tiers)
		if all[i].decision.Action != pod.Leave {
			tiers.Ordinary = tiers.Ordinary || all[i].state.Kind == pod.Ordinary
			tiers.Critical = tiers.Critical || all[i].state.Kind == pod.Critical
		}
	}
	return all
}

// decide decides what happens to the pod.
func (n *Node) decide(j *judged, tiers pod.Tiers) {
	now, since := n.viewed, n.observe(j, tiers)
	j.next = n.view.Next(j.pod)
	due := j.state.Moment == pod.FromL || j.state.Moment == pod.FromShortening
	if due && !since.IsZero() {
		// At L an eviction in flight has a moment left. Then whatever delays it refuses it.
		if last := latest(n.own(n.view.ForcedAt(j.pod)), since.Add(lastEviction)); now.Before(last) {
			j.decision = pod.Decision{Action: pod.Wait, Reason: pod.DeadlineNear}
			j.consider(n.served(last))
			return
		}
		j.state.Answer = pod.Refused
	}
	j.decision = pod.Decide(j.state)
	j.forgive(j.decision.Action)
	if now.Before(j.retry) {
		j.consider(n.served(j.retry))
	}
	if j.pending(j.decision.Action, now) {
		j.consider(n.served(j.accepted.Add(visible)))
		if j.decision.Action == pod.Evict || j.decision.Action == pod.Delete {
			j.decision = pod.Decision{Action: pod.Wait, Reason: pod.Terminating}
		}
	}
}

// observe reads the state of the pod, and returns since when an eviction of the pod is in flight.
func (n *Node) observe(j *judged, tiers pod.Tiers) time.Time {
	d := n.drainer
	j.guard = d.guardOf(j.tracked)
	j.state = n.view.Observe(j.pod, tiers)
	j.state.Volume = n.view.HasVolume != nil && n.view.HasVolume(j.pod)
	if j.state.End == pod.BeyondP && j.credit != notOurs && !n.view.Times.GraceEnds.Before(j.endsBy) {
		j.state.End = pod.InTime // the API server took its time: 5 s less would be worse
	}
	answer, gate, since := d.queue.status(j.pod.UID, j.guard, n.viewed)
	j.state.Answer = answer
	switch {
	case j.state.Gate != pod.Open:
	case d.config.NamespaceEnds != nil && d.config.NamespaceEnds(j.pod.Namespace):
		j.state.Gate = pod.ByNamespace
	default:
		j.state.Gate = gate
	}
	return since
}

// consider has the result change at the time, if that is to come: a time that has passed would hide all others.
func (j *judged) consider(at time.Time) {
	if !at.After(j.node.view.Now) {
		return
	}
	if j.next.IsZero() || at.Before(j.next) {
		j.next = at
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// waiting are the reasons for which an eviction waits in the queue.
var waiting = []pod.Reason{pod.BudgetInUse, pod.BudgetBlocks, pod.EvictionRefused, pod.RequestsPause}

// carryOut has the requests of the decision sent.
func (n *Node) carryOut(j judged) {
	queue, id, action := n.drainer.queue, j.pod.UID, j.decision.Action
	waits := action == pod.Evict || slices.Contains(waiting, j.decision.Reason)
	if n.view.Drain && j.state.Moment == pod.Early && waits {
		n.tellIgnored(j.tracked)
		queue.set(id, n.view.ForcedAt(j.pod), j.guard, n.viewed)
		return
	}
	queue.drop(id)
	if n.view.Drain && action != pod.Wait && action != pod.Leave {
		n.force(j)
	}
}

// force has a forced request sent, unless one is on its way, or was refused a moment ago.
func (n *Node) force(j judged) {
	if j.forcing || j.pending(j.decision.Action, n.viewed) || n.viewed.Before(j.retry) {
		return
	}
	if j.cancel != nil {
		j.cancel()
	}
	j.forcing = true
	to := &n.drainer.forced
	if j.failures > 0 {
		to = &n.drainer.repeated
	}
	to.add(&job{record: j.tracked, action: j.decision.Action, obstacle: obstacleOf(j.state, j.decision),
		forced: n.view.ForcedAt(j.pod)})
}

// obstacleOf returns what keeps the pod from being evicted, and DeadlineNear if nothing does.
func obstacleOf(s pod.State, d pod.Decision) pod.Reason {
	switch {
	case d.Action == pod.Shorten, d.Action == pod.Remove:
		return d.Reason
	case s.Answer == pod.Blocked:
		return pod.BudgetBlocks
	case s.Answer == pod.Refused:
		return pod.EvictionRefused
	}
	switch s.Gate {
	case pod.ByAnnotation:
		return pod.DoNotDisrupt
	case pod.ByNamespace:
		return pod.NamespaceEnds
	case pod.ByPause:
		return pod.RequestsPause
	default:
		return pod.DeadlineNear
	}
}
