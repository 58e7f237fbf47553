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
	// Immediate asks for the places of all nodes if no node was selected.
	Immediate bool
}

// Requirement returns where the volume shall be reachable from, nil for no wish.
// Its errors say what the nodes lack.
func Requirement(in Input) (*csi.TopologyRequirement, error) {
	if in.Selected != nil {
		return near(in)
	}
	places, err := candidates(in, nil)
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
	places, err := candidates(in, in.Selected.Keys)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	first := slices.IndexFunc(places, func(place Place) bool { return place.Contains(own) })
	if first < 0 {
		return nil, fmt.Errorf("node %s lies in %s, which the storage class does not allow", in.Selected.Name, describe(own))
	}
	return requirement(places, first), nil
}

// selected returns the place of the node that the scheduler chose.
func selected(node *Node) (Place, error) {
	if len(node.Keys) == 0 {
		return nil, fmt.Errorf("the driver has registered no topology keys on node %s; see whether it runs there", node.Name)
	}
	place := placeOf(node.Labels, node.Keys)
	if place == nil {
		return nil, fmt.Errorf("node %s lacks labels for some of the topology keys %s", node.Name, strings.Join(node.Keys, ", "))
	}
	return place, nil
}

func strict(in Input, own Place) (*csi.TopologyRequirement, error) {
	within := func(place Place) bool { return place.Contains(own) }
	if places := allowed(in.Allowed); len(places) > 0 && !slices.ContainsFunc(places, within) {
		return nil, fmt.Errorf("node %s lies in %s, which the storage class does not allow", in.Selected.Name, describe(own))
	}
	return requirement([]Place{own}, 0), nil
}

// candidates returns the places that come into question, in their order; none
// means no wish. Without keys those are taken that most nodes have.
func candidates(in Input, keys []string) ([]Place, error) {
	switch {
	case len(in.Allowed) > 0:
		return distinct(allowed(in.Allowed)), nil
	case in.Selected == nil && !in.Immediate:
		return nil, nil
	}
	if keys == nil {
		keys = commonKeys(in.Nodes)
	}
	if len(keys) == 0 {
		return nil, errors.New("the driver has registered topology keys on no node; see whether it runs on any")
	}
	var places []Place
	for _, node := range in.Nodes {
		if place := placeOf(node.Labels, keys); place != nil {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("no node has labels for the topology keys %s", strings.Join(keys, ", "))
	}
	return distinct(places), nil
}

// commonKeys returns the topology keys that most nodes have; nodes differ while
// a driver is being upgraded.
func commonKeys(nodes []Node) []string {
	count := map[string]int{}
	keys := map[string][]string{}
	for _, node := range nodes {
		if len(node.Keys) == 0 {
			continue
		}
		name := strings.Join(slices.Sorted(slices.Values(node.Keys)), ",")
		count[name]++
		keys[name] = node.Keys
	}
	most := ""
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if most == "" || count[name] > count[most] {
			most = name
		}
	}
	return keys[most]
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
