package graph

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WaitingOwner is an owner whose deletion waits for its dependents.
type WaitingOwner struct {
	Object
	// Deleted is the deletion timestamp.
	Deleted time.Time
	// Orphaning: the dependents stay, and lose their reference.
	Orphaning bool
	// Passed: the graph has seen every kind since the deletion.
	Passed bool
	// Remaining is the number of dependents that the deletion waits for.
	Remaining int
	// Examples are some of them.
	Examples []Object
	// Top: no owner of the object waits itself.
	Top bool
}

// maxExamples bounds the examples of one owner.
const maxExamples = 5

// Waiting returns the owners that wait, ordered by UID.
func (g *Graph) Waiting() []WaitingOwner {
	owners := make([]WaitingOwner, 0, len(g.waiting))
	for n := range g.waiting {
		owners = append(owners, n.waitingOwner())
	}
	slices.SortFunc(owners, func(a, b WaitingOwner) int { return compareUIDs(a.UID, b.UID) })
	return owners
}

// WaitingOwner returns the owner with the UID, false if it does not wait.
func (g *Graph) WaitingOwner(uid types.UID) (WaitingOwner, bool) {
	n := g.nodes[uid]
	if n == nil || n.kind == nil || !n.waits() {
		return WaitingOwner{}, false
	}
	return n.waitingOwner(), true
}

func (n *node) waitingOwner() WaitingOwner {
	w := WaitingOwner{Object: n.object(), Orphaning: n.has(orphan), Passed: n.passed(), Remaining: int(n.blocking), Top: !n.isAwaited()}
	if w.Orphaning {
		w.Remaining = int(n.matching)
	}
	if n.owner != nil {
		w.Deleted = n.owner.deleted
	}
	if w.Remaining == 0 {
		return w
	}
	for dependent := range n.dependents {
		if matches, blocks := n.counts(dependent); blocks || matches && w.Orphaning {
			w.Examples = append(w.Examples, dependent.object())
			if len(w.Examples) == maxExamples {
				break
			}
		}
	}
	return w
}
