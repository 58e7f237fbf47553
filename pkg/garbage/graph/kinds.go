package graph

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	names "github.com/exeunt-io/exeunt/pkg/garbage/reference"
)

// Kind returns the served kind, nil if there is none.
func (g *Graph) Kind(kind schema.GroupKind) *Kind { return g.kinds[kind] }

// named returns the served kind that the reference names, nil if there is none, or several that differ in case.
func (g *Graph) named(r *reference) *Kind {
	kind := r.kind.Value().GroupKind()
	if served := g.kinds[kind]; served != nil || kind.Kind != strings.ToLower(kind.Kind) {
		return served
	}
	var found *Kind
	for _, served := range g.kinds {
		switch {
		case !r.namesKind(served.GroupKind()):
		case found != nil:
			return nil
		default:
			found = served
		}
	}
	return found
}

// Serve adds a served kind, and has the objects judged whose references it resolves.
func (g *Graph) Serve(kind *Kind) {
	g.kinds[kind.GroupKind()] = kind
	delete(g.withdrawn, kind.GroupKind())
	g.changeReferringTo(kind.GroupKind())
}

// Withdraw removes a kind that is not served for the time being: references to it are
// unresolvable, but for those to owners that were absent before. Its objects stay, and block.
func (g *Graph) Withdraw(kind schema.GroupKind) {
	if served := g.kinds[kind]; served != nil {
		g.withdrawn[kind] = served
	}
	delete(g.kinds, kind)
}

// Drop removes the objects of a kind that no longer exists. Owners that they blocked are
// judged again. Their dependents stay, unless the objects were absent before.
func (g *Graph) Drop(kind *Kind) {
	g.Withdraw(kind.GroupKind())
	g.leaveKind(kind)
	delete(g.observed, kind)
}

// Vanished records that a list in the version did not have the objects of the kind other than
// those present. Objects that anything depends on are to be read live, others are forgotten.
func (g *Graph) Vanished(kind *Kind, version string, present map[types.UID]struct{}) {
	g.readAliases(kind, present)
	if g.observed[kind] == g.countOf(kind, present) {
		return // as after the first list of the kind
	}
	for _, n := range g.ofKind(kind) {
		if _, found := present[n.uid]; found {
			continue
		}
		order, ok := Compare(n.version, version)
		switch {
		case ok && order > 0: // committed after the list
		case ok && len(n.dependents) == 0 && !n.isAwaited():
			g.leave(n, n.identity())
		default:
			g.mark(n)
		}
	}
}

// Reappeared records that a later list of a kind shows an object which the graph did not have. It is new, or etcd was
// restored: then its owners may exist again, so that what is known of their absence proves nothing.
func (g *Graph) Reappeared(uid types.UID) {
	n := g.nodes[uid]
	if n == nil {
		return
	}
	for owner := range n.owners() {
		if owner.owner != nil {
			owner.owner.absent, owner.owner.reads = nil, nil
		}
	}
	g.change(n)
}

// ListedAgain records that a later list shows an object that the graph has. If a write to it has succeeded and its
// event has not come, etcd may have been restored, and the event never comes: the object is judged again.
func (g *Graph) ListedAgain(uid types.UID) {
	if n := g.nodes[uid]; n != nil && n.kind != nil && (n.has(sent) || n.waits()) {
		n.flags &^= sent
		g.change(n)
	}
}

// countOf returns how many of the objects the graph has as objects of the kind.
func (g *Graph) countOf(kind *Kind, uids map[types.UID]struct{}) int {
	count := 0
	for uid := range uids {
		if n := g.nodes[uid]; n != nil && n.kind == kind {
			count++
		}
	}
	return count
}

// isAwaited reports whether an owner waits for the object.
func (n *node) isAwaited() bool { return n.waitingOwnerOf() != nil }

func (g *Graph) ofKind(kind *Kind) []*node {
	nodes := make([]*node, 0, g.observed[kind])
	for _, n := range g.nodes {
		if n.kind == kind {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (g *Graph) changeReferringTo(kind schema.GroupKind) {
	if !g.isReferenced(kind) { // as most new kinds: the graph need not be searched
		return
	}
	for _, n := range g.nodes {
		for i := range n.references {
			if n.references[i].namesKind(kind) {
				g.change(n)
				break
			}
		}
	}
}

func (g *Graph) isReferenced(kind schema.GroupKind) bool {
	for referenced := range g.referenced {
		if names.Names(referenced.Value().GroupKind(), kind) {
			return true
		}
	}
	return false
}

// Rewind prepares the graph for objects of the kind that are older than those it has: etcd was restored. What
// is not observed again is read live, and so is what is known of owners.
func (g *Graph) Rewind(kind *Kind) {
	for _, n := range g.nodes {
		if n.kind == kind {
			n.version = ""
			n.flags &^= sent
			g.mark(n)
		}
		n.rewindAlias(kind)
		if n.owner != nil {
			n.owner.absent, n.owner.reads = nil, nil
			n.owner.epoch, n.owner.passed = n.owner.epoch+1, false
		}
		g.change(n)
	}
}

// Unsettled calls add with every object that may need an action.
func (g *Graph) Unsettled(add func(types.UID)) {
	for _, n := range g.nodes {
		if g.isUnsettled(n) {
			add(n.uid)
		}
	}
}

// Has reports whether the graph has the object.
func (g *Graph) Has(uid types.UID) bool {
	n := g.nodes[uid]
	return n != nil && n.kind != nil
}

// HasOtherVersion reports whether the graph has the object, in another version.
func (g *Graph) HasOtherVersion(uid types.UID, version string) bool {
	n := g.nodes[uid]
	return n != nil && n.kind != nil && n.version != version
}

// Matches reports whether the graph has the object exactly as it was read.
func (g *Graph) Matches(object metav1.Object) bool {
	n := g.nodes[object.GetUID()]
	return n != nil && n.kind != nil && n.version == object.GetResourceVersion() && n.isAs(object)
}

// Contradicts reports whether a list in this version shows the object in an older state than one that the graph has,
// and that was committed before the list: no list of the same storage can.
func (g *Graph) Contradicts(kind *Kind, object metav1.Object, version string) bool {
	n := g.nodes[object.GetUID()]
	if n == nil || n.kind != kind {
		return false
	}
	older, known := Compare(object.GetResourceVersion(), n.version)
	newer, listed := Compare(n.version, version)
	return known && listed && older < 0 && newer <= 0
}

// Objects returns the objects of the kind.
func (g *Graph) Objects(kind *Kind) []Object {
	nodes := g.ofKind(kind)
	objects := make([]Object, len(nodes))
	for i, n := range nodes {
		objects[i] = n.object()
	}
	return objects
}

// Kinds returns the served kinds.
func (g *Graph) Kinds() []*Kind { return slices.Collect(maps.Values(g.kinds)) }

// Replace serves the kind under another version, and has the objects judged whose references it resolves.
func (g *Graph) Replace(old, kind *Kind) {
	for _, n := range g.ofKind(old) {
		n.kind = kind
	}
	g.replaceAlias(old, kind)
	g.observed[kind] += g.observed[old]
	delete(g.observed, old)
	g.Serve(kind)
}

// Doubt has an object read live.
func (g *Graph) Doubt(uid types.UID) {
	if n := g.nodes[uid]; n != nil && n.kind != nil {
		g.mark(n)
	}
}
