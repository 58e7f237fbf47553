package explore

import (
	"cmp"
	"slices"
)

// checkRest judges the sets of states that free steps cannot leave, in the order in which their first
// states were found: in each of these states the world can come to rest.
func (e *explorer[S, K]) checkRest() {
	sets := restSets(e.nodes)
	for _, set := range sets {
		slices.Sort(set)
	}
	slices.SortFunc(sets, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	for _, set := range sets {
		for _, id := range set {
			for _, f := range e.AtRest(e.nodes[id].state, len(set) > 1) {
				e.violate(id, f)
			}
		}
	}
	e.result.Resting = len(sets)
}

// restSets returns the strongly connected sets of states that no free step leaves (Tarjan).
func restSets[S any](nodes []node[S]) [][]int32 {
	t := &tarjan[S]{nodes: nodes}
	t.index, t.low, t.onStack = make([]int32, len(nodes)), make([]int32, len(nodes)), make([]bool, len(nodes))
	for id := range nodes {
		if t.index[id] == 0 {
			t.visit(int32(id))
		}
	}
	return t.sets
}

// tarjan finds strongly connected sets without recursion.
type tarjan[S any] struct {
	nodes []node[S]
	// index is the order in which the nodes are visited, from 1; low the lowest index on the stack that
	// is reached from a node, and of a node whose set is complete the set, below 0.
	index, low []int32
	stack      []int32
	onStack    []bool
	count      int32
	sets       [][]int32
}

// frame is a node whose edges are being followed.
type frame struct {
	id   int32
	edge int
}

func (t *tarjan[S]) visit(root int32) {
	frames := []frame{t.open(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if f.edge == len(t.nodes[f.id].free) {
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				above := frames[len(frames)-1].id
				t.low[above] = min(t.low[above], t.low[f.id])
			}
			t.close(f.id)
			continue
		}
		next := t.nodes[f.id].free[f.edge]
		f.edge++
		switch {
		case t.index[next] == 0:
			frames = append(frames, t.open(next))
		case t.onStack[next]:
			t.low[f.id] = min(t.low[f.id], t.index[next])
		}
	}
}

func (t *tarjan[S]) open(id int32) frame {
	t.count++
	t.index[id], t.low[id] = t.count, t.count
	t.stack, t.onStack[id] = append(t.stack, id), true
	return frame{id: id}
}

// close completes the set whose first node this is, and keeps the set if nothing leaves it.
func (t *tarjan[S]) close(id int32) {
	if t.low[id] != t.index[id] {
		return
	}
	first := len(t.stack) - 1
	for t.stack[first] != id {
		first--
	}
	set := slices.Clone(t.stack[first:])
	t.stack = t.stack[:first]
	for _, member := range set {
		t.onStack[member], t.low[member] = false, -id-1
	}
	if !slices.ContainsFunc(set, func(member int32) bool { return t.leaves(member, -id-1) }) {
		t.sets = append(t.sets, set)
	}
}

// leaves reports whether the world need not rest in the set because of this member.
func (t *tarjan[S]) leaves(member, set int32) bool {
	n := &t.nodes[member]
	return n.cut || slices.ContainsFunc(n.free, func(next int32) bool { return t.low[next] != set })
}
