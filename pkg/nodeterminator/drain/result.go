package drain

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// keptAfter is after how many refused requests, some seconds, a pod counts as kept.
const keptAfter = 3

const (
	// DeletionRefused is the reason of a pod whose deletion is refused, and of the event about it.
	DeletionRefused = "DeletionRefused"
	// KubeletUnreachable is the reason of a pod whose kubelet is silent, in place of KubeletStuck.
	KubeletUnreachable = "KubeletUnreachable"
)

// result returns how far the pods have come.
func (n *Node) result(all []judged) Result {
	r := Result{Synced: true, Counts: n.counts, CutShort: n.named()}
	settled := latest(latest(n.view.Begun, n.served(n.synced)), n.served(n.lastNew)).Add(settling)
	if n.view.Now.Before(settled) {
		r.Next = settled
	} else {
		r.Settled = len(n.unanswered) == 0
	}
	for _, j := range all {
		if !j.next.IsZero() && (r.Next.IsZero() || j.next.Before(r.Next)) {
			r.Next = j.next
		}
		r.Pods = max(r.Pods, n.podsOf(j))
		n.count(&r.Counts, j)
		r.Left = append(r.Left, n.left(j))
		if strands(j) {
			r.Unawaited = append(r.Unawaited, j.pod)
		} else {
			r.Awaited = append(r.Awaited, j.pod)
		}
	}
	n.addUnanswered(&r)
	return r
}

// Last returns the result of a node that is released now, which waits for no answer any more: pods whose end is not counted
// yet are unknown. It is empty, and not synced, if no pod was counted.
func (n *Node) Last() Result {
	n.drainer.mu.Lock()
	defer n.drainer.mu.Unlock()
	if !n.counted {
		return Result{}
	}
	n.counts.Unknown += len(n.unanswered)
	clear(n.unanswered)
	return n.result(n.judge())
}

// addUnanswered names the pods whose end is not counted yet: a leader that follows knows them by the report alone.
func (n *Node) addUnanswered(r *Result) {
	for _, id := range slices.Sorted(maps.Keys(n.unanswered)) {
		r.Counts.Left++
		r.Left = append(r.Left, termination.Left{Pod: nameOf(n.unanswered[id].pod), UID: string(id), Reason: string(pod.Terminating)})
	}
}

// named returns the pods that were cut short, as far as a report lists them.
func (n *Node) named() []termination.CutShort {
	return slices.Clone(n.cutShort[:min(len(n.cutShort), termination.MaxCutShort)])
}

// podsOf returns what the pod is to the node.
func (n *Node) podsOf(j judged) node.Pods {
	kept := j.sent == pod.Remove && len(j.pod.Finalizers) > 0 || j.failures >= keptAfter
	switch {
	case j.decision.Action == pod.Remove && kept:
		return node.Kept
	case j.decision.Action == pod.Remove:
		return node.Stuck
	case j.decision.Action != pod.Leave:
		return node.Awaited
	case goesWithNode(j):
		return node.NoPods
	case j.decision.Reason == pod.ContainersFinished, j.decision.Reason == pod.ForeignFinalizer:
		return node.Finished
	}
	return node.Stuck
}

// goesWithNode reports whether the pod is a static pod or a DaemonSet's that is left.
func goesWithNode(j judged) bool {
	return j.decision.Action == pod.Leave && (j.state.Kind == pod.Mirror ||
		j.state.Kind == pod.Daemon && (j.decision.Reason == pod.WouldReturn || j.decision.Reason == pod.GoesWithNode))
}

// count counts a pod that is still there.
func (n *Node) count(counts *termination.Counts, j judged) {
	switch {
	case goesWithNode(j):
		counts.WithNode++
	case j.decision.Reason == pod.ContainersFinished:
		counts.Finished++
	default:
		counts.Left++
	}
}

// strands reports whether nobody waits for the volumes of the pod: the kubelet does not unmount them by itself.
func strands(j judged) bool {
	return j.decision.Action == pod.Leave && slices.Contains([]pod.Reason{pod.KubeletStuck, pod.WouldReturn, pod.StaticPod,
		pod.GoesWithNode}, j.decision.Reason)
}

// left says why the pod is still there, and what keeps it.
func (n *Node) left(j judged) termination.Left {
	left := termination.Left{Pod: nameOf(j.pod), UID: string(j.pod.UID), Reason: string(j.decision.Reason)}
	switch {
	case j.refusal != "" && j.decision.Reason != pod.ContainersFinished:
		left.Reason, left.Holder = DeletionRefused, j.refusal
	case j.decision.Reason == pod.ForeignFinalizer, j.sent == pod.Remove && len(j.pod.Finalizers) > 0:
		left.Reason, left.Holder = string(pod.ForeignFinalizer), holders(j.pod)
	case j.decision.Reason == pod.KubeletStuck && n.view.Silent:
		left.Reason = KubeletUnreachable
	case j.decision.Reason == pod.BudgetBlocks, j.decision.Reason == pod.BudgetInUse:
		left.Holder = j.budgetName()
	case j.decision.Reason == pod.EvictionRefused:
		left.Holder = j.evictionText
	}
	return left
}

// holders returns the finalizers of the pod, and who removes them.
func holders(p *v1.Pod) string {
	var names []string
	for _, finalizer := range p.Finalizers {
		if family, known := families.Find(finalizer, "Pod", ""); known {
			finalizer += " (" + family.Name + ")"
		}
		names = append(names, finalizer)
	}
	return strings.Join(names, ", ")
}
