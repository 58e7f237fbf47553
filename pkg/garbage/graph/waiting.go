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
	// Examples are some of them; [Graph.Waiting] leaves them out.
	Examples []Object
	// Top: no owner of the object waits itself, or the object speaks for a cycle of owners.
	Top bool
}

const (
	// maxExamples bounds the examples of one owner.
	maxExamples = 5
	// maxChain bounds the search for the top of a chain of waiting owners.
	maxChain = 100
)

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
	w := n.waitingOwner()
	n.addExamples(&w)
	return w, true
}

func (n *node) waitingOwner() WaitingOwner {
	w := WaitingOwner{Object: n.object(), Orphaning: n.has(orphan), Passed: n.passed(),
		Remaining: int(n.blocking), Top: n.isTop()}
	if w.Orphaning {
		w.Remaining = int(n.matching)
	}
	if n.owner != nil {
		w.Deleted = n.owner.deleted
	}
	return w
}

// addExamples adds some of the dependents that the deletion waits for.
func (n *node) addExamples(w *WaitingOwner) {
	if w.Remaining == 0 {
		return
	}
	for dependent := range n.dependents {
		if matches, blocks := n.counts(dependent); blocks || matches && w.Orphaning {
			w.Examples = append(w.Examples, dependent.object())
			if len(w.Examples) == maxExamples {
				return
			}
		}
	}
}

// isTop reports whether no owner of the object waits. Of owners that wait for each other in a cycle, it is
// the one with the least UID.
func (n *node) isTop() bool {
	at := n.waitingOwnerOf()
	if at == nil {
		return true
	}
	least := true
	for range maxChain {
		switch at {
		case nil:
			return false
		case n:
			return least
		}
		least = least && n.uid < at.uid
		at = at.waitingOwnerOf()
	}
	return false
}

// waitingOwnerOf returns the first owner of the object that waits, nil if there is none.
func (n *node) waitingOwnerOf() *node {
	for owner := range n.owners() {
		if owner.waits() {
			return owner
		}
	}
	return nil
}
