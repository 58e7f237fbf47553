package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Component is a set of owners that are deleted in the foreground and wait for each other.
type Component struct {
	Members []Member
	// BlockedOutside: a dependent that is no member blocks a member.
	BlockedOutside bool
	// Seen: every member has passed a barrier.
	Seen bool
}

// Member is an owner in a component.
type Member struct {
	Object
	// ForegroundIndex is the place of the finalizer foregroundDeletion.
	ForegroundIndex int
	Passed          bool
}

// Components returns the strongly connected components, also of one object that blocks
// itself, over references that block, among the owners deleted in the foreground. It takes
// time linear in the number of these owners and their dependents. An owner without an owner of its own
// in the foreground is in no component, so that the dependents of most owners are not visited.
func (g *Graph) Components() []Component {
	s := search{index: map[*node]int{}, low: map[*node]int{}, on: map[*node]bool{}}
	for n := range g.waiting {
		if _, found := s.index[n]; !found && n.blocking > 0 && n.inForeground() && n.hasOwnerInForeground() {
			s.visit(n)
		}
	}
	var components []Component
	for _, members := range s.found {
		components = append(components, componentOf(members))
	}
	return components
}

// UIDs returns the UIDs of the members.
func (c Component) UIDs() map[types.UID]bool {
	uids := make(map[types.UID]bool, len(c.Members))
	for _, member := range c.Members {
		uids[member.UID] = true
	}
	return uids
}

// IsBlockedByOther reports whether a dependent that is none of the members blocks the owner.
func (g *Graph) IsBlockedByOther(owner types.UID, members map[types.UID]bool) bool {
	n := g.nodes[owner]
	if n == nil {
		return false
	}
	for dependent := range n.dependents {
		if _, blocks := n.counts(dependent); blocks && !members[dependent.uid] {
			return true
		}
	}
	return false
}

// search is Tarjan's algorithm, without recursion: a chain of owners may be long.
type search struct {
	index, low map[*node]int
	on         map[*node]bool
	stack      []*node
	found      [][]*node
}

// frame is an owner whose dependents are being visited.
type frame struct {
	n    *node
	next []*node
}

func (s *search) visit(root *node) {
	frames := []frame{s.open(root)}
	for len(frames) > 0 {
		top := &frames[len(frames)-1]
		if len(top.next) == 0 {
			s.close(top.n)
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				parent := frames[len(frames)-1].n
				s.low[parent] = min(s.low[parent], s.low[top.n])
			}
			continue
		}
		next := top.next[0]
		top.next = top.next[1:]
		if index, found := s.index[next]; !found {
			frames = append(frames, s.open(next))
		} else if s.on[next] {
			s.low[top.n] = min(s.low[top.n], index)
		}
	}
}

func (s *search) open(n *node) frame {
	s.index[n], s.low[n], s.on[n] = len(s.index), len(s.index), true
	s.stack = append(s.stack, n)
	return frame{n, n.blockersInForeground()}
}

// close ends the visit of an owner, which may complete a component.
func (s *search) close(n *node) {
	if s.low[n] != s.index[n] {
		return
	}
	begin := len(s.stack) - 1
	for s.stack[begin] != n {
		begin--
	}
	members := slices.Clone(s.stack[begin:])
	s.stack = s.stack[:begin]
	for _, member := range members {
		s.on[member] = false
	}
	if len(members) > 1 || n.isBlockedBy(n) {
		s.found = append(s.found, members)
	}
}

// hasOwnerInForeground reports whether an owner of the object is deleted in the foreground.
func (n *node) hasOwnerInForeground() bool {
	return slices.ContainsFunc(n.references, func(r reference) bool { return r.owner.inForeground() })
}

// blockersInForeground returns the dependents, deleted in the foreground themselves, that block the deletion of
// the owner.
func (n *node) blockersInForeground() []*node {
	var blockers []*node
	for dependent := range n.dependents {
		if dependent.inForeground() && n.isBlockedBy(dependent) {
			blockers = append(blockers, dependent)
		}
	}
	return blockers
}

// isBlockedBy reports whether the dependent blocks the deletion of the owner.
func (n *node) isBlockedBy(dependent *node) bool {
	_, blocks := n.counts(dependent)
	return blocks
}

// isBlockedOutside reports whether a dependent that is not in the set blocks the deletion of the owner.
func (n *node) isBlockedOutside(set map[*node]bool) bool {
	for dependent := range n.dependents {
		if !set[dependent] && n.isBlockedBy(dependent) {
			return true
		}
	}
	return false
}

func componentOf(members []*node) Component {
	inside := make(map[*node]bool, len(members))
	for _, n := range members {
		inside[n] = true
	}
	c := Component{Seen: true}
	for _, n := range members {
		c.Members = append(c.Members, Member{Object: n.object(), ForegroundIndex: int(n.foregroundIndex), Passed: n.passed()})
		c.Seen = c.Seen && n.passed()
		c.BlockedOutside = c.BlockedOutside || n.isBlockedOutside(inside)
	}
	slices.SortFunc(c.Members, func(a, b Member) int { return compareUIDs(a.UID, b.UID) })
	return c
}

func compareUIDs(a, b types.UID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
