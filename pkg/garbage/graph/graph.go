package graph

import (
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// Graph holds the objects of all collected kinds. The zero value is not usable.
type Graph struct {
	nodes map[types.UID]*node
	// kinds are the served kinds, withdrawn those that were served before.
	kinds, withdrawn map[schema.GroupKind]*Kind
	// observed counts the objects of each kind.
	observed map[*Kind]int
	// referenced counts the references to each kind.
	referenced map[unique.Handle[schema.GroupVersionKind]]int
	// waiting are the objects that are deleted in the foreground or orphaning.
	waiting map[*node]struct{}
	// aliased are the objects that were observed under several kinds.
	aliased map[*node]struct{}
	// virtualLifetime is how long the first live read of an owner that is not in the graph keeps its dependents.
	virtualLifetime time.Duration
	// marks counts the objects that were marked as missing.
	marks   uint64
	changed []types.UID
}

// New returns an empty graph without kinds.
func New() *Graph {
	return &Graph{
		nodes: map[types.UID]*node{}, kinds: map[schema.GroupKind]*Kind{}, withdrawn: map[schema.GroupKind]*Kind{},
		observed: map[*Kind]int{}, referenced: map[unique.Handle[schema.GroupVersionKind]]int{},
		waiting: map[*node]struct{}{}, aliased: map[*node]struct{}{},
	}
}

// TakeChanged returns the objects to be judged since the last call; an object may be in the
// list several times.
func (g *Graph) TakeChanged() []types.UID {
	changed := g.changed
	g.changed = nil
	return changed
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Observe records an object that a list or a watch returned. It returns false for a state that is not
// newer than the known one, which is ignored.
func (g *Graph) Observe(kind *Kind, object metav1.Object) (recorded bool) {
	n := g.nodes[object.GetUID()]
	if n == nil {
		n = g.add(object.GetUID(), object.GetName())
	}
	if n.knows(kind, object) {
		if n.kind == kind {
			n.flags &^= missing
		}
		return false
	}
	g.update(n, kind, object)
	return true
}

// mark has the object read live, which a list lacked.
func (g *Graph) mark(n *node) {
	n.flags |= missing
	g.marks++
	g.change(n)
}

// Refresh records a newer state of an object that is in the graph. It is for responses, which
// may arrive after the event DELETED of the object, or after a list that lacked it: then it is still to be read.
func (g *Graph) Refresh(kind *Kind, object metav1.Object) {
	n := g.nodes[object.GetUID()]
	if n == nil || n.kind != kind || n.version == object.GetResourceVersion() {
		return // the removal of the last finalizer is answered with the version before it
	}
	marked := n.has(missing)
	g.Observe(kind, object)
	if marked {
		n.flags |= missing
		g.change(n)
	}
}

// Confirm records a live read that began while the graph had this version of the object.
func (g *Graph) Confirm(known Object, live metav1.Object) {
	n := g.nodes[known.UID]
	if n == nil || n.kind != known.Kind {
		return
	}
	marked := n.has(missing) && g.marks != known.marks // perhaps by a list that is newer than the read
	g.Observe(known.Kind, live)
	if marked {
		n.flags |= missing
		g.change(n)
	}
}

// IsBehind reports whether a live read, which began while the graph had this version of the object, shows an older one
// although no event came since.
func (g *Graph) IsBehind(known Object, live metav1.Object) bool {
	n := g.nodes[known.UID]
	if n == nil || n.kind != known.Kind || n.version != known.Version {
		return false
	}
	order, integers := Compare(live.GetResourceVersion(), n.version)
	return integers && order < 0
}

// update replaces the state of the node.
func (g *Graph) update(n *node, kind *Kind, object metav1.Object) {
	old, added, moved := n.flags, n.kind == nil, !n.isAt(kind, object)
	rewired := moved || !sameReferences(n.references, object.GetOwnerReferences())
	if rewired {
		g.unlink(n)
	}
	known := moved && g.move(n, kind, object)
	n.version = object.GetResourceVersion()
	n.flags, n.foregroundIndex, n.orphanIndex = flagsOf(object)
	if rewired {
		g.link(n, object.GetOwnerReferences())
	}
	if n.owner != nil {
		n.owner.reads = nil
		g.doubtAbsence(n)
	}
	switch {
	case added || old&policy != n.flags&policy:
		g.changePolicy(n, object)
	case moved && !known: // served in two groups
		g.changeDependents(n)
	}
	g.change(n)
}

// doubtAbsence has an object read live that is observed at a place where it was absent. The event may be late, or the
// absence a mistake.
func (g *Graph) doubtAbsence(n *node) {
	at := n.coordinates()
	if !n.isAbsentAt(at) {
		return
	}
	n.owner.absent = slices.DeleteFunc(n.owner.absent, func(absent Coordinates) bool { return absent == at })
	g.mark(n)
	g.changeDependents(n)
}

// changePolicy begins a new epoch of the object as an owner.
func (g *Graph) changePolicy(n *node, object metav1.Object) {
	if n.waits() || n.owner != nil {
		own := n.own()
		own.epoch, own.passed = own.epoch+1, false
		if deletion := deadline.Of(object); deletion.Kind() != deadline.NotDeleted {
			own.deleted = deletion.Requested()
		}
	}
	if n.waits() {
		g.waiting[n] = struct{}{}
	} else {
		delete(g.waiting, n)
	}
	g.changeDependents(n)
}

// maxUnnamed bounds the places at which one owner is known to be absent, beside those that references name.
const maxUnnamed = 64

// Deleted records that no object with the UID exists at the coordinates: a watch event
// DELETED, or a live read. This holds until the object is seen there again.
func (g *Graph) Deleted(uid types.UID, at Coordinates) {
	n := g.nodes[uid]
	if n == nil {
		return
	}
	if len(n.dependents) > 0 && !n.isAbsentAt(at) {
		own := n.own()
		if size := len(own.absent); size >= maxUnnamed && size&(size-1) == 0 { // now and then: it takes long
			own.absent = slices.DeleteFunc(own.absent, func(at Coordinates) bool { return !n.isNamedAt(at) })
		}
		own.absent = append(own.absent, at)
	}
	if observed, found := n.identityAt(at); found {
		g.leave(n, observed)
		return
	}
	for dependent := range n.dependents { // one owner may be named in many namespaces
		if dependent.names(n, at) {
			g.change(dependent)
		}
	}
}

// isNamedAt reports whether a reference names the owner at the coordinates.
func (n *node) isNamedAt(at Coordinates) bool {
	for dependent := range n.dependents {
		if dependent.names(n, at) {
			return true
		}
	}
	return false
}

// names reports whether a reference of the object names the owner at the coordinates.
func (n *node) names(owner *node, at Coordinates) bool {
	return slices.ContainsFunc(n.references, func(r reference) bool {
		return r.owner == owner && r.name == at.Name && r.namesKind(at.GroupKind) &&
			(at.Namespace == "" || at.Namespace == n.namespace.Value())
	})
}

// remove removes an observed object, and keeps its node while it has dependents.
func (g *Graph) remove(n *node) {
	g.unlink(n)
	g.observed[n.kind]--
	delete(g.waiting, n)
	g.setAliases(n, nil)
	n.kind, n.flags, n.matching, n.blocking = nil, 0, 0, 0
	if n.owner != nil {
		n.owner.reads, n.owner.passed, n.owner.epoch = nil, false, n.owner.epoch+1
	}
	g.changeDependents(n)
	g.drop(n)
}

// drop forgets a node without object and dependents.
func (g *Graph) drop(n *node) {
	if n.kind == nil && len(n.dependents) == 0 {
		delete(g.nodes, n.uid)
	}
}

func (g *Graph) add(uid types.UID, name string) *node {
	n := &node{uid: uid, name: name, namespace: unique.Make("")}
	g.nodes[uid] = n
	return n
}

// link adds the references of the node.
func (g *Graph) link(n *node, references []metav1.OwnerReference) {
	if len(references) == 0 {
		return
	}
	n.references = make([]reference, len(references))
	for i, r := range references {
		owner := g.nodes[r.UID]
		if owner == nil {
			owner = g.add(r.UID, r.Name)
		}
		name := r.Name
		if name == owner.name {
			name = owner.name // one copy of the text
		}
		kind := unique.Make(kindOf(&r))
		g.referenced[kind]++
		blocks := r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
		n.references[i] = reference{owner: owner, kind: kind, name: name, blocks: blocks}
	}
	for owner := range n.owners() {
		if owner.dependents == nil {
			owner.dependents = make(map[*node]struct{}, 1)
		}
		owner.dependents[n] = struct{}{}
		owner.count(n, 1)
	}
}

// unlink removes the references of the node.
func (g *Graph) unlink(n *node) {
	for owner := range n.owners() {
		owner.count(n, -1)
		delete(owner.dependents, n)
		if owner.waits() {
			g.change(owner)
		}
		if owner != n {
			g.drop(owner)
		}
	}
	for _, r := range n.references {
		if g.referenced[r.kind]--; g.referenced[r.kind] == 0 {
			delete(g.referenced, r.kind)
		}
	}
	n.references = nil
}

// count adds the dependent to the counters of the owner, by 1 or -1.
func (n *node) count(dependent *node, by int32) {
	matches, blocks := n.counts(dependent)
	if matches {
		n.matching += by
	}
	if blocks {
		n.blocking += by
	}
}

// owners iterates over the owners of the node, each once.
func (n *node) owners() func(yield func(*node) bool) {
	return func(yield func(*node) bool) {
		for i, r := range n.references {
			if slices.ContainsFunc(n.references[:i], func(other reference) bool { return other.owner == r.owner }) {
				continue
			}
			if !yield(r.owner) {
				return
			}
		}
	}
}

func sameReferences(known []reference, references []metav1.OwnerReference) bool {
	return slices.EqualFunc(known, references, func(k reference, r metav1.OwnerReference) bool {
		return k.owner.uid == r.UID && k.name == r.Name && k.kind.Value() == kindOf(&r) &&
			k.blocks == (r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion)
	})
}

// change has the object judged. Owners that live need no judgement.
func (g *Graph) change(n *node) {
	if g.isUnsettled(n) {
		g.changed = append(g.changed, n.uid)
	}
}

func (g *Graph) changeDependents(n *node) {
	for dependent := range n.dependents {
		g.change(dependent)
	}
}

// isUnsettled reports whether the object may need an action: it waits as an owner, a list
// lacked it, or the graph does not show a live owner for each of its references.
func (g *Graph) isUnsettled(n *node) bool {
	if n.kind == nil {
		return false
	}
	if n.waits() || n.has(missing) {
		return true
	}
	for i := range n.references {
		r := &n.references[i]
		if r.owner.kind == nil || r.owner.waits() || r.owner.has(missing) || !r.owner.isNamedBy(r, n) {
			return true
		}
	}
	return false
}
