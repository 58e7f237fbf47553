package topology

import (
	"slices"
	"strings"
)

// Pool knows the nodes of a cluster by the part that requirements depend on: the registered
// keys and the values of their labels. Nodes that are equal in that part count as one, so
// that a requirement costs the number of segments, not of nodes.
type Pool struct {
	of     map[string]string // group by node name
	groups map[string]*group
}

// group is the set of nodes with the same keys and values.
type group struct {
	node  Node // without a name
	count int
}

// NewPool returns a pool without nodes.
func NewPool() *Pool {
	return &Pool{of: map[string]string{}, groups: map[string]*group{}}
}

// Set adds the node, or replaces the node of that name. A node without keys is removed: no
// requirement depends on it.
func (p *Pool) Set(node Node) {
	p.Remove(node.Name)
	if len(node.Keys) == 0 {
		return
	}
	node.Keys = slices.Compact(slices.Sorted(slices.Values(node.Keys)))
	registered := map[string]string{}
	for _, key := range node.Keys {
		if value, found := node.Labels[key]; found {
			registered[key] = value
		}
	}
	id := strings.Join(node.Keys, ",") + ";" + string(SegmentOf(registered))
	p.of[node.Name] = id
	if p.groups[id] == nil {
		p.groups[id] = &group{node: Node{Labels: registered, Keys: node.Keys}}
	}
	p.groups[id].count++
}

// Remove removes the node with the name.
func (p *Pool) Remove(name string) {
	id, known := p.of[name]
	if !known {
		return
	}
	delete(p.of, name)
	if p.groups[id].count--; p.groups[id].count == 0 {
		delete(p.groups, id)
	}
}

// Except returns one node for each group, unordered and without names. A group of only the
// node with the name is left out. The nodes are read-only.
func (p *Pool) Except(name string) []Node {
	own, known := p.of[name]
	nodes := make([]Node, 0, len(p.groups))
	for id, group := range p.groups {
		if !known || id != own || group.count > 1 {
			nodes = append(nodes, group.node)
		}
	}
	return nodes
}
