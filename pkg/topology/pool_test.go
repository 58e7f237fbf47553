package topology_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// randomNode has up to three keys in any order, and labels for some of them.
func randomNode(random *rand.Rand, name string) topology.Node {
	node := topology.Node{Name: name, Labels: map[string]string{}}
	for _, key := range []string{"zone", "rack", "region"} {
		if random.IntN(4) > 0 {
			node.Labels[key] = fmt.Sprint("v", random.IntN(3))
		}
		if random.IntN(3) > 0 {
			node.Keys = append(node.Keys, key)
		}
	}
	random.Shuffle(len(node.Keys), func(i, j int) { node.Keys[i], node.Keys[j] = node.Keys[j], node.Keys[i] })
	return node
}

func poolInput(random *rand.Rand, nodes []topology.Node) topology.Input {
	in := topology.Input{ClaimName: fmt.Sprint("data-set-", random.IntN(9)), Nodes: nodes, Strict: random.IntN(4) == 0,
		Immediate: random.IntN(4) > 0}
	if random.IntN(4) == 0 {
		in.Allowed = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone",
			Values: []string{"v0", "v1"}}}}}
	}
	switch selected := randomNode(random, fmt.Sprint("node-", random.IntN(12))); random.IntN(3) {
	case 0:
		in.Selected = &selected
	case 1:
		if len(nodes) > 0 {
			in.Selected = &nodes[random.IntN(len(nodes))]
		}
	}
	return in
}

func TestPoolGivesTheRequirementOfAllNodes(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		pool, nodes := topology.NewPool(), map[string]topology.Node{}
		for range random.IntN(40) {
			name := fmt.Sprint("node-", random.IntN(12))
			if random.IntN(4) == 0 {
				pool.Remove(name)
				delete(nodes, name)
				continue
			}
			nodes[name] = randomNode(random, name)
			pool.Set(nodes[name])
		}
		var all []topology.Node
		for i := range 12 {
			if node, exists := nodes[fmt.Sprint("node-", i)]; exists {
				all = append(all, node)
			}
		}
		in := poolInput(random, all)
		want, wantErr := topology.Requirement(in)
		unneeded := !in.NeedsNodes()
		if in.Nodes = nil; !unneeded {
			selected := ""
			if in.Selected != nil {
				selected = in.Selected.Name
			}
			in.Nodes = pool.Except(selected)
		}
		got, gotErr := topology.Requirement(in)
		if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("seed %d: requirement %v (%v), want %v (%v)\nnodes %v\ninput %+v", seed, got, gotErr, want, wantErr, all,
				in)
		}
	}
}

func TestPoolHasOneNodeForEachGroup(t *testing.T) {
	pool := topology.NewPool()
	for i := range 100 {
		pool.Set(topology.Node{Name: fmt.Sprint(i), Labels: map[string]string{"zone": fmt.Sprint(i % 3),
			"host": fmt.Sprint(i)}, Keys: []string{"zone"}})
	}
	if nodes := pool.Except("0"); len(nodes) != 3 {
		t.Errorf("nodes %v, want one for each of 3 zones", nodes)
	}
	for i := range 100 {
		pool.Remove(fmt.Sprint(i))
	}
	if nodes := pool.Except(""); len(nodes) != 0 {
		t.Errorf("nodes %v of an empty pool", nodes)
	}
}

// BenchmarkRequirement has 5,000 nodes in three zones.
func BenchmarkRequirement(b *testing.B) {
	var all []topology.Node
	pool := topology.NewPool()
	for i := range 5000 {
		node := topology.Node{Name: fmt.Sprint("node-", i), Labels: map[string]string{"zone": fmt.Sprint("zone-", i%3),
			"host": fmt.Sprint(i)}, Keys: []string{"zone"}}
		all = append(all, node)
		pool.Set(node)
	}
	for name, nodes := range map[string]func(except string) []topology.Node{"all": func(string) []topology.Node { return all }, "pool": pool.Except} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := topology.Requirement(topology.Input{ClaimName: "claim", Selected: &all[7],
					Nodes: nodes("node-7")}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
