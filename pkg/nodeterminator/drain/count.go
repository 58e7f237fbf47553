package drain

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// departure is the end of a pod, by our clock.
type departure struct {
	record *tracked
	at     time.Time
}

// accept notes a request that was accepted. The pod is that of the time when the request was sent.
func (n *Node) accept(r *tracked, out outcome) {
	d, sent, action, seconds, obstacle := n.drainer, out.pod, out.action, out.seconds, out.obstacle
	r.sent, r.accepted, r.failures, r.refusal, r.retry = action, d.clock.Now(), 0, "", time.Time{}
	r.doubted = nil
	entry := termination.CutShort{Pod: nameOf(sent), UID: string(sent.UID), Owner: ownerOf(sent), Reason: string(obstacle)}
	r.endsBy = n.view.Times.GraceEnds
	grace := graceOf(sent)
	if sent.DeletionTimestamp != nil {
		grace = granted(sent)
		entry.Given = max(0, int64(n.served(r.accepted).Sub(requestedAt(sent))/time.Second))
	}
	entry.Given += seconds
	if action == pod.Remove && n.view.Silent { // a dead kubelet sends no SIGTERM
		entry.Reason, entry.Given = KubeletUnreachable, n.givenAlive(sent)
	}
	entry.Missing = max(0, grace-entry.Given)
	if obstacle == pod.BudgetBlocks {
		entry.Budget = r.budgetName()
	}
	named := entry.Missing > 0
	switch action {
	case pod.Evict:
		r.credit, named = byEviction, named || obstacle == pod.DoNotDisrupt
	case pod.Delete:
		r.credit, named = byDeletion, true
	case pod.Remove:
		r.credit, named = byRemoval, named && n.endedEarly(sent)
	default:
	}
	if entry.Missing > 0 && action != pod.Remove {
		r.credit = cutShort
	}
	if action != pod.Evict {
		d.deletions.WithLabelValues(string(obstacle)).Inc()
	}
	if named {
		n.addNamed(r, entry, action)
	}
}

// addNamed adds a pod to those that are cut short, and sends an event about it unless the pod was dead.
func (n *Node) addNamed(r *tracked, entry termination.CutShort, action pod.Action) {
	n.addCut(entry)
	if action != pod.Remove {
		n.tellDisrupted(r, entry)
	}
}

// endedEarly reports whether the end of the machine took time from the pod. A DaemonSet's pod and a static pod go with
// the node. A kubelet that is stuck has killed the containers, one that is dead has not.
func (n *Node) endedEarly(p *v1.Pod) bool {
	kind, end := pod.KindOf(p), n.view.EndOf(p)
	return kind != pod.Mirror && kind != pod.Daemon && end != pod.Finished && end != pod.ContainersEnded &&
		(end != pod.Overdue || n.view.Silent)
}

// givenAlive returns the seconds of its grace period that a Terminating pod had before its kubelet fell silent.
func (n *Node) givenAlive(p *v1.Pod) int64 {
	if p.DeletionTimestamp == nil {
		return 0
	}
	return min(granted(p), max(0, int64(n.view.SilentSince.Sub(requestedAt(p))/time.Second)))
}

// budgetName returns the budget that blocks the pod.
func (r *tracked) budgetName() string {
	if len(r.budgets) > 0 {
		return r.budgets[0]
	}
	return r.blockedBy
}

// addCut adds the pod to the list. A pod that was cut before had less than its grace period to lose, and keeps its
// reason.
func (n *Node) addCut(entry termination.CutShort) {
	id := types.UID(entry.UID)
	if at, listed := n.cut[id]; listed {
		before := n.cutShort[at]
		entry.Missing = max(0, before.Given+before.Missing-entry.Given)
		entry.Reason, entry.Budget = before.Reason, before.Budget
		n.cutShort[at] = entry
		return
	}
	n.cut[id] = len(n.cutShort)
	n.cutShort = append(n.cutShort, entry)
}

// begin starts to count: pods that ended since the first action, and those of an earlier leader that are missing.
func (n *Node) begin() {
	if n.counted || n.view.Begun.IsZero() {
		return
	}
	n.counted = true
	for _, left := range n.early {
		if !n.served(left.at).Before(n.view.Begun) {
			n.ended(left.record)
		}
	}
	n.early = nil
	n.countOld()
}

// countOld counts the pods that an earlier leader left and that this process has never seen.
func (n *Node) countOld() {
	for _, left := range n.old {
		if !n.seen[types.UID(left.UID)] {
			n.counts.Unknown++
		}
	}
	n.old = nil
}

// settle notes a request whose answer was lost and whose effect shows, and counts a pod that is gone. While a request
// is on its way, its answer says more.
func (n *Node) settle(r *tracked) {
	if r.forcing || r.cancel != nil {
		if r.gone {
			n.unanswered[r.pod.UID] = r
		}
		return
	}
	if r.doubted != nil && r.shows(*r.doubted) {
		n.accept(r, *r.doubted)
	}
	if r.gone {
		delete(n.unanswered, r.pod.UID)
		n.ended(r)
	}
}

// ended counts a pod that is gone.
func (n *Node) ended(r *tracked) {
	if !n.counted {
		n.early = append(n.early, departure{r, n.drainer.clock.Now()})
		return
	}
	kind := pod.KindOf(r.pod)
	switch credit := n.creditOf(r); {
	case kind == pod.Mirror:
		n.counts.WithNode++
	case r.finished:
		n.counts.Finished++
	case credit == byEviction:
		n.counts.Evicted++
	case credit == byDeletion:
		n.counts.Deleted++
	case credit == cutShort:
		n.counts.CutShort++
	case credit == byRemoval:
		n.counts.Removed++
	case kind == pod.Daemon:
		n.counts.WithNode++
	case r.seenEnd || r.pod.DeletionTimestamp != nil:
		n.counts.Others++
	default:
		n.counts.Unknown++
	}
}

// creditOf returns how the pod was ended. What an earlier leader did shows in the condition of the pod.
func (n *Node) creditOf(r *tracked) credit {
	if r.credit != notOurs || !n.restored {
		return r.credit
	}
	var found credit
	switch disruptedBy(r.pod) {
	case disruptionReason:
		found = byDeletion
	case byEvictionAPI:
		found = byEviction
	default:
		return notOurs
	}
	if missing := graceOf(r.pod) - r.granted; missing > 0 {
		found = cutShort
		if _, listed := n.cut[r.pod.UID]; !listed {
			n.addCut(termination.CutShort{Pod: nameOf(r.pod), UID: string(r.pod.UID), Owner: ownerOf(r.pod),
				Reason: string(pod.DeadlineNear), Given: r.granted, Missing: missing})
		}
	}
	return found
}

// Restore counts what the report of an earlier leader says, beside what was counted since. Before the first Reconcile it is
// called at least with an empty report. It returns the counts that it added, and all pods that were cut short.
func (n *Node) Restore(report termination.Report) (termination.Counts, []termination.CutShort) {
	d := n.drainer
	d.mu.Lock()
	defer d.mu.Unlock()
	n.restored = true
	earlier := report.Counts
	finished := 0
	for _, left := range report.Left {
		if left.Reason == string(pod.ContainersFinished) {
			finished++
		}
	}
	// Pods that are still there are counted again, by what they are now. The reason WouldReturn does not say whether a
	// pod goes with the node, the numbers do.
	earlier.WithNode -= len(report.Left) - finished - earlier.Left
	earlier.Finished -= finished
	earlier.Left = 0
	n.counts = n.counts.Plus(earlier)
	n.old = append(n.old, report.Left...)
	if unknown := n.counts.Unknown; n.counted {
		n.countOld()
		earlier.Unknown += n.counts.Unknown - unknown
	}
	for _, entry := range report.CutShort {
		n.restoreCut(entry)
	}
	return earlier, n.named()
}

// restoreCut takes over an entry of an earlier leader. A pod that this process has cut, too, keeps the earlier reason.
func (n *Node) restoreCut(entry termination.CutShort) {
	at, listed := n.cut[types.UID(entry.UID)]
	if !listed {
		n.addCut(entry)
		return
	}
	own := n.cutShort[at]
	n.cutShort[at] = entry
	n.addCut(own)
}
