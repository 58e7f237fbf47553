package graph

import (
	"slices"
	"strconv"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// identity is where a node is observed. Several groups may serve one object, and two watches may have the same
// path after a definition was created again with another kind.
type identity struct {
	kind      *Kind
	namespace unique.Handle[string]
	name      string
}

// alias is another identity of a node, with the version in which it was observed there last.
type alias struct {
	identity
	version string
}

func (i identity) coordinates() Coordinates {
	return Coordinates{GroupKind: i.kind.GroupKind(), Namespace: i.namespace.Value(), Name: i.name}
}

// isNamedBy reports whether the reference of the dependent names the identity.
func (i identity) isNamedBy(r *reference, dependent *node) bool {
	return r.name == i.name && r.namesKind(i.kind.GroupKind()) &&
		(!i.kind.Namespaced || i.namespace == dependent.namespace)
}

// identity returns where the node was observed last; without a kind if it is not observed.
func (n *node) identity() identity { return identity{n.kind, n.namespace, n.name} }

// aliases returns the other identities of the node.
func (n *node) aliases() []alias {
	if n.owner == nil {
		return nil
	}
	return n.owner.aliases
}

// identityAt returns the identity of the node at the coordinates, false if it was not observed there.
func (n *node) identityAt(at Coordinates) (identity, bool) {
	if n.kind == nil {
		return identity{}, false
	}
	if n.coordinates() == at {
		return n.identity(), true
	}
	for _, a := range n.aliases() {
		if a.coordinates() == at {
			return a.identity, true
		}
	}
	return identity{}, false
}

// knows reports whether the node was observed as an object of the kind in this state or a newer one: a watch may be
// behind a list of its kind. A list that shows the version of an alias again is recorded: what another kind delivered
// since may be older. An aggregated API server may give all states one version.
func (n *node) knows(kind *Kind, object metav1.Object) bool {
	if n.kind == kind {
		order, integers := Compare(object.GetResourceVersion(), n.version)
		return integers && (order < 0 || order == 0 && n.isAs(object))
	}
	for _, a := range n.aliases() {
		if a.kind == kind {
			order, integers := Compare(object.GetResourceVersion(), a.version)
			return integers && order < 0
		}
	}
	return false
}

// isAs reports whether all that the graph has of the object, but its version, is as in the object.
func (n *node) isAs(object metav1.Object) bool {
	known := n.flags &^ (missing | sent)
	now, _, _ := flagsOf(object)
	return known == now && n.name == object.GetName() && n.namespace.Value() == object.GetNamespace() &&
		sameReferences(n.references, object.GetOwnerReferences())
}

// isObservedAt reports whether the node was observed at the coordinates.
func (n *node) isObservedAt(at Coordinates) bool {
	_, found := n.identityAt(at)
	return found
}

// move sets the identity of the node, of which the former one becomes an alias. It reports whether the new one
// was an alias.
func (g *Graph) move(n *node, kind *Kind, object metav1.Object) (known bool) {
	next := identity{kind, unique.Make(object.GetNamespace()), object.GetName()}
	known = slices.ContainsFunc(n.aliases(), func(a alias) bool { return a.identity == next })
	kept := slices.DeleteFunc(slices.Clone(n.aliases()), func(a alias) bool { return a.kind == kind })
	if n.kind != nil && n.kind != kind {
		kept = append(kept, alias{n.identity(), n.version})
	}
	g.setAliases(n, kept)
	g.identify(n, next)
	return known
}

// identify sets the identity of the node, and counts its dependents anew.
func (g *Graph) identify(n *node, next identity) {
	if n.kind != nil {
		g.observed[n.kind]--
	}
	n.kind, n.namespace = next.kind, next.namespace
	if n.name != next.name {
		n.name = next.name
	}
	g.observed[n.kind]++
	n.recount()
}

// recount counts the dependents anew.
func (n *node) recount() {
	n.matching, n.blocking = 0, 0
	for dependent := range n.dependents {
		n.count(dependent, 1)
	}
}

func (g *Graph) setAliases(n *node, aliases []alias) {
	if len(aliases) == 0 {
		delete(g.aliased, n)
		if n.owner != nil {
			n.owner.aliases = nil
		}
		return
	}
	n.own().aliases = aliases
	g.aliased[n] = struct{}{}
}

// leave removes one identity of the node. An object that has another one is read live there.
func (g *Graph) leave(n *node, gone identity) {
	if n.identity() != gone {
		g.setAliases(n, slices.DeleteFunc(slices.Clone(n.aliases()), func(a alias) bool { return a.identity == gone }))
		n.recount()
		g.change(n)
		g.changeDependents(n)
		return
	}
	aliases := n.aliases()
	if len(aliases) == 0 {
		g.remove(n)
		return
	}
	g.readAs(n, aliases[0].identity, slices.Clone(aliases[1:]))
}

// readAs has the object read live under an identity.
func (g *Graph) readAs(n *node, next identity, aliases []alias) {
	for owner := range n.owners() {
		owner.count(n, -1)
	}
	g.setAliases(n, aliases)
	g.identify(n, next)
	n.version = "" // the other kind may have a counter of its own
	for owner := range n.owners() {
		if owner != n {
			owner.count(n, 1)
		}
	}
	g.mark(n)
	g.changeDependents(n)
}

// readAliases has the objects read live under the kind of a list that lacked them, and which another kind delivered
// last.
func (g *Graph) readAliases(kind *Kind, present map[types.UID]struct{}) {
	for n := range g.aliased {
		at := slices.IndexFunc(n.aliases(), func(a alias) bool { return a.kind == kind })
		if _, found := present[n.uid]; found || at < 0 {
			continue
		}
		next, others := n.aliases()[at], slices.Delete(slices.Clone(n.aliases()), at, at+1)
		g.readAs(n, next.identity, append(others, alias{n.identity(), n.version}))
	}
}

// leaveKind removes the kind from every node that is observed under it.
func (g *Graph) leaveKind(kind *Kind) {
	for n := range g.aliased {
		for _, a := range n.aliases() {
			if a.kind == kind {
				g.leave(n, a.identity)
			}
		}
	}
	if g.observed[kind] > 0 {
		for _, n := range g.ofKind(kind) {
			g.leave(n, n.identity())
		}
	}
}

// replaceAlias has the aliases of a kind be those of the kind in another version.
func (g *Graph) replaceAlias(old, kind *Kind) {
	for n := range g.aliased {
		for i := range n.owner.aliases {
			if n.owner.aliases[i].kind == old {
				n.owner.aliases[i].kind = kind
			}
		}
	}
}

// rewindAlias forgets the version in which the node was observed as an object of the kind.
func (n *node) rewindAlias(kind *Kind) {
	for i, a := range n.aliases() {
		if a.kind == kind {
			n.owner.aliases[i].version = ""
		}
	}
}

// Kind is a served kind, under one of its versions. Kinds are compared by group and kind.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name in paths.
	Resource   string
	Namespaced bool
	// Collected: the objects of the kind are in the graph.
	Collected bool
}

// GroupResource returns the resource, as CustomResourceDefinitions are named.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// GroupVersionResource returns the resource in the version of the kind.
func (k *Kind) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// Coordinates are where an object is stored. The namespace of a cluster-scoped kind is "".
type Coordinates struct {
	schema.GroupKind
	Namespace, Name string
}

// Compare compares two resource versions of one kind. Versions that are no integers cannot be
// compared.
func Compare(a, b string) (order int, integers bool) {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	switch {
	case errX != nil || errY != nil:
		return 0, false
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}
