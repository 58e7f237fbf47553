package drain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// Sight is what can be seen of the pods of a node that is not being terminated.
type Sight struct {
	// Pending: nothing is missing but the list of the pods of the node.
	Pending bool
	// Known: all pods of the node and the budgets of the cluster are known. Else everything else is empty.
	Known bool
	// Blocking are the pods that cannot be evicted now, and why.
	Blocking []termination.Left
	// Next is when that changes by time alone, the zero time if it does not.
	Next time.Time
}

// blocking are the reasons for which a pod cannot be evicted.
var blocking = []pod.Reason{pod.DoNotDisrupt, pod.BudgetBlocks, pod.EvictionRefused}

// Look returns which pods of the node cannot be evicted at this time. It sends nothing. Each change of a pod or of a budget
// calls Notify.
func (n *Node) Look(now time.Time) Sight {
	d := n.drainer
	d.mu.Lock()
	defer d.mu.Unlock()
	n.view, n.viewed, n.looking = View{View: pod.View{Now: now}}, d.clock.Now(), true
	n.budgets = nil
	n.early = nil // nobody counts pods before the first action
	if n.synced.IsZero() || !d.budgetsKnown() {
		return Sight{Pending: n.synced.IsZero() && d.budgetsKnown()}
	}
	seen := Sight{Known: true}
	n.budgets = sets.New[string]()
	for _, j := range n.judge() {
		n.budgets.Insert(j.guard.budgets...)
		n.decide(&j, pod.Tiers{}) // the order is for a drain
		if left, blocks := n.blocks(j); blocks {
			seen.Blocking = append(seen.Blocking, left)
		}
		if !j.next.IsZero() && (seen.Next.IsZero() || j.next.Before(seen.Next)) {
			seen.Next = j.next
		}
	}
	return seen
}

// blocks reports whether the pod cannot be evicted, and why. The API server evicts no pod of two budgets, which it says
// only when it is asked.
func (n *Node) blocks(j judged) (termination.Left, bool) {
	left := n.left(j)
	if j.decision.Action == pod.Evict && len(j.guard.budgets) > 1 {
		left.Reason, left.Holder = string(pod.EvictionRefused), strings.Join(j.guard.budgets, ", ")
		return left, true
	}
	return left, j.decision.Action == pod.Wait && slices.Contains(blocking, j.decision.Reason)
}

// notifyLooking has the nodes reconciled whose pods are only looked at, and that the changed budget may concern. Regrouped:
// the budget selects other pods than before.
func (d *Drainer) notifyLooking(budget string, regrouped bool) {
	for _, n := range d.nodes {
		if n.looking && (regrouped || n.budgets == nil || n.budgets.Has(budget)) {
			d.notify(n)
		}
	}
}
