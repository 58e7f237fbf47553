package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
)

// Node is what is known of one node.
type Node struct {
	Name   string
	Labels map[string]string
	// Keys are the topology keys that the driver has registered on the node, none
	// if it does not run there.
	Keys []string
}

// Input is what a requirement is made from.
type Input struct {
	// ClaimName decides which place is preferred if no node was chosen.
	ClaimName string
	// Allowed is what the storage class says.
	Allowed []v1.TopologySelectorTerm
	// Selected is the node that the scheduler chose, nil with Immediate binding.
	Selected *Node
	// Nodes are all nodes.
	Nodes []Node
	// Strict asks for the place of the selected node alone.
	Strict bool
	// Immediate asks for the topologies of all nodes with the driver if no node
	// was selected.
	Immediate bool
}

// Requirement returns where the volume shall be reachable from, nil for no wish.
// Its errors say what the nodes lack.
func Requirement(in Input) (*csi.TopologyRequirement, error) {
	if in.Selected != nil {
		return near(in)
	}
	places, err := candidates(in)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	return requirement(places, int(spread(in.ClaimName)%uint32(len(places)))), nil
}

// near returns the requirement for a node that the scheduler chose.
func near(in Input) (*csi.TopologyRequirement, error) {
	own, err := selected(in.Selected)
	if err != nil {
		return nil, err
	}
	if in.Strict {
		return strict(in, own)
	}
	places, err := candidates(in)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	first := slices.IndexFunc(places, func(place Place) bool { return place.Contains(own) })
	if first < 0 {
		return nil, fmt.Errorf("selected node %s lies in topology %s, which is not in allowed topologies of the storage class", in.Selected.Name, describe(own))
	}
	return requirement(places, first), nil
}

// selected returns the place of the node that the scheduler chose.
func selected(node *Node) (Place, error) {
	if len(node.Keys) == 0 {
		return nil, fmt.Errorf("no topology key found for node %s: the driver has registered none there; see whether it runs there", node.Name)
	}
	place := placeOf(node.Labels, node.Keys)
	if place == nil {
		return nil, fmt.Errorf("topology labels from selected node %s lack some of the topology keys from CSINode, %s", node.Name, strings.Join(node.Keys, ", "))
	}
	return place, nil
}

func strict(in Input, own Place) (*csi.TopologyRequirement, error) {
	within := func(place Place) bool { return place.Contains(own) }
	if places := allowed(in.Allowed); len(places) > 0 && !slices.ContainsFunc(places, within) {
		return nil, fmt.Errorf("selected node %s lies in topology %s, which is not in allowed topologies of the storage class", in.Selected.Name, describe(own))
	}
	return requirement([]Place{own}, 0), nil
}

// candidates returns the topologies to choose from, in their order; none means no
// requirement.
func candidates(in Input) ([]Place, error) {
	switch {
	case len(in.Allowed) > 0:
		return distinct(allowed(in.Allowed)), nil
	case in.Selected != nil:
		others := slices.DeleteFunc(slices.Clone(in.Nodes), func(n Node) bool { return n.Name == in.Selected.Name })
		return registered(append(others, *in.Selected), [][]string{in.Selected.Keys})
	case !in.Immediate:
		return nil, nil
	}
	return registered(in.Nodes, keySets(in.Nodes))
}

// registered returns the topologies of the nodes for each set of keys. A node
// counts for the sets that the driver has registered on it: its labels alone do
// not say that the driver serves it.
func registered(nodes []Node, sets [][]string) ([]Place, error) {
	if len(sets) == 0 {
		return nil, errors.New("no available topology found: the driver has registered topology keys on no node; see whether it runs on any")
	}
	var topologies []Place
	for _, keys := range sets {
		for _, node := range nodes {
			if topology := placeOf(node.Labels, keys); topology != nil && node.covers(keys) {
				topologies = append(topologies, topology)
			}
		}
	}
	if len(topologies) == 0 {
		return nil, fmt.Errorf("topologyKeys %s were not found on any nodes: no node has labels for them", describeSets(sets))
	}
	return distinct(topologies), nil
}

// covers reports whether the driver has registered all the keys on the node.
func (n Node) covers(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(n.Keys, key) })
}

// keySets returns every set of topology keys that the driver has registered on
// nodes, each of them once, in an order of their own. Nodes differ while a driver
// is being upgraded, and where a part of the cluster has more keys.
func keySets(nodes []Node) [][]string {
	var sets [][]string
	for _, node := range nodes {
		if len(node.Keys) > 0 {
			sets = append(sets, slices.Sorted(slices.Values(node.Keys)))
		}
	}
	slices.SortFunc(sets, slices.Compare)
	return slices.CompactFunc(sets, slices.Equal)
}

// describeSets returns sets of keys as a user reads them.
func describeSets(sets [][]string) string {
	texts := make([]string, 0, len(sets))
	for _, keys := range sets {
		texts = append(texts, strings.Join(keys, ", "))
	}
	return strings.Join(texts, " or ")
}

// requirement prefers the places from the one at first on, in a circle.
func requirement(places []Place, first int) *csi.TopologyRequirement {
	preferred := slices.Concat(places[first:], places[:first])
	return &csi.TopologyRequirement{Requisite: toCSI(places), Preferred: toCSI(preferred)}
}

// describe returns a place as a user reads it.
func describe(place Place) string {
	segments := make([]string, 0, len(place))
	for _, key := range slices.Sorted(maps.Keys(place)) {
		segments = append(segments, key+"="+place[key])
	}
	return strings.Join(segments, ", ")
}
