package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Vertex is a node of a dump. Its names are those of the debugging page of Kubernetes.
type Vertex struct {
	UID       types.UID `json:"uid"`
	Group     string    `json:"group"`
	Version   string    `json:"version"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Missing: the graph does not have the object.
	Missing            bool `json:"missing"`
	BeingDeleted       bool `json:"beingDeleted"`
	DeletingDependents bool `json:"deletingDependents"`
	Orphaning          bool `json:"orphaning"`
	// Unread: the graph may lack dependents that were committed before the deletion.
	Unread bool `json:"unread"`
	// BlockedBy are the dependents that the deletion waits for.
	BlockedBy []types.UID `json:"blockedBy"`
}

// Edge leads from a dependent to its owner.
type Edge struct {
	From     types.UID `json:"from"`
	To       types.UID `json:"to"`
	Blocking bool      `json:"blocking"`
}

// Dump returns the objects that are reachable from those with the UIDs over owner references,
// in both directions; without UIDs, all objects that have owners or dependents, or wait. Sort orders
// them, which takes longer than the dump and does not need the graph.
func (g *Graph) Dump(uids ...types.UID) ([]Vertex, []Edge) {
	chosen := g.nodes
	if len(uids) > 0 {
		chosen = g.connected(uids)
	}
	vertices, edges := []Vertex{}, []Edge{}
	for _, n := range chosen {
		if len(uids) == 0 && len(n.references) == 0 && len(n.dependents) == 0 && !n.waits() {
			continue
		}
		vertices = append(vertices, n.vertex())
		for _, r := range n.references {
			edges = append(edges, Edge{n.uid, r.owner.uid, r.blocks})
		}
	}
	return vertices, edges
}

// Sort sorts a dump by UIDs.
func Sort(vertices []Vertex, edges []Edge) {
	slices.SortFunc(vertices, func(a, b Vertex) int { return compareUIDs(a.UID, b.UID) })
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(compareUIDs(a.From, b.From), compareUIDs(a.To, b.To)) })
}

func (g *Graph) connected(uids []types.UID) map[types.UID]*node {
	found := map[types.UID]*node{}
	for next := slices.Clone(uids); len(next) > 0; {
		uid := next[len(next)-1]
		next = next[:len(next)-1]
		n := g.nodes[uid]
		if n == nil || found[uid] != nil {
			continue
		}
		found[uid] = n
		for owner := range n.owners() {
			next = append(next, owner.uid)
		}
		for dependent := range n.dependents {
			next = append(next, dependent.uid)
		}
	}
	return found
}

func (n *node) vertex() Vertex {
	v := Vertex{
		UID: n.uid, Namespace: n.namespace.Value(), Name: n.name, Missing: n.kind == nil, BeingDeleted: n.has(deleting),
		DeletingDependents: n.has(deleting | foreground), Orphaning: n.has(deleting | orphan),
		Unread: n.waits() && !n.passed(), BlockedBy: []types.UID{},
	}
	gvk := n.assumedKind()
	v.Group, v.Version, v.Kind = gvk.Group, gvk.Version, gvk.Kind
	for dependent := range n.dependents {
		if matches, blocks := n.counts(dependent); n.inForeground() && blocks || n.has(deleting|orphan) && matches {
			v.BlockedBy = append(v.BlockedBy, dependent.uid)
		}
	}
	slices.Sort(v.BlockedBy)
	return v
}

// assumedKind returns the kind of the object; of a missing owner, that of a reference to it.
func (n *node) assumedKind() schema.GroupVersionKind {
	if n.kind != nil {
		return n.kind.GroupVersionKind
	}
	for dependent := range n.dependents {
		for _, r := range dependent.references {
			if r.owner == n {
				return r.kind.Value()
			}
		}
	}
	return schema.GroupVersionKind{}
}
