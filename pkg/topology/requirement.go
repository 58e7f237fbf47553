package topology

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
)

// Node is a node with the topology keys that the driver registered in its CSINode.
type Node struct {
	Name   string
	Labels map[string]string
	// Keys is empty if the driver does not run on the node.
	Keys []string
}

// Input is everything that a requirement depends on.
type Input struct {
	// ClaimName picks the preferred segment if no node is selected.
	ClaimName string
	// Allowed are the allowed topologies of the storage class.
	Allowed []v1.TopologySelectorTerm
	// Selected is the node that the scheduler selected, nil with Immediate binding.
	Selected *Node
	// Nodes are all nodes, or those of a [Pool]; see NeedsNodes.
	Nodes []Node
	// Strict requests the segment of the selected node only (--strict-topology).
	Strict bool
	// Immediate requests the segments of all nodes if no node is selected
	// (--immediate-topology).
	Immediate bool
}

// NeedsNodes reports whether the requirement depends on Nodes.
func (in Input) NeedsNodes() bool {
	switch {
	case len(in.Allowed) > 0:
		return false
	case in.Selected != nil:
		return !in.Strict
	}
	return in.Immediate
}

// Requirement returns the accessibility requirements of a CreateVolumeRequest, nil for
// none. Its errors name what the nodes lack.
func Requirement(in Input) (*csi.TopologyRequirement, error) {
	if in.Selected != nil {
		return requirementForNode(in)
	}
	segments, err := candidates(in)
	if err != nil || len(segments) == 0 {
		return nil, err
	}
	return requirement(segments, int(preferredOffset(in.ClaimName)%uint32(len(segments)))), nil
}

// requirementForNode returns the requirement of a claim with a selected node.
func requirementForNode(in Input) (*csi.TopologyRequirement, error) {
	own, err := selectedSegment(in.Selected)
	if err != nil {
		return nil, err
	}
	if in.Strict {
		return strictRequirement(in, own)
	}
	segments, err := candidates(in)
	if err != nil || len(segments) == 0 {
		return nil, err
	}
	first := indexContaining(segments, own)
	if first < 0 {
		return nil, notAllowed(in.Selected, own)
	}
	return requirement(segments, first), nil
}

// selectedSegment returns the segment of the selected node.
func selectedSegment(node *Node) (Segment, error) {
	if len(node.Keys) == 0 {
		return "", fmt.Errorf("no topology key found for node %s: the driver has registered none there; see whether it runs there", node.Name)
	}
	segment, found := SegmentWithKeys(node.Labels, node.Keys)
	if !found {
		return "", fmt.Errorf("topology labels from selected node %s lack some of the topology keys from CSINode, %s",
			node.Name, strings.Join(node.Keys, ", "))
	}
	return segment, nil
}

func strictRequirement(in Input, own Segment) (*csi.TopologyRequirement, error) {
	if segments := allowedSegments(in.Allowed); len(segments) > 0 && indexContaining(segments, own) < 0 {
		return nil, notAllowed(in.Selected, own)
	}
	return requirement([]Segment{own}, 0), nil
}

// indexContaining returns the index of the first segment that contains the other one,
// -1 if none does.
func indexContaining(segments []Segment, other Segment) int {
	labels := other.Labels()
	return slices.IndexFunc(segments, func(s Segment) bool { return s.Contains(labels) })
}

func notAllowed(selected *Node, own Segment) error {
	return fmt.Errorf("selected node %s lies in topology %s, which is not in allowed topologies of the storage class",
		selected.Name, describe(own))
}

// candidates returns the requisite segments in order; none for no requirement.
func candidates(in Input) ([]Segment, error) {
	switch {
	case len(in.Allowed) > 0:
		return distinct(allowedSegments(in.Allowed)), nil
	case in.Selected != nil:
		others := slices.DeleteFunc(slices.Clone(in.Nodes), func(n Node) bool { return n.Name == in.Selected.Name })
		return registeredSegments(append(others, *in.Selected), [][]string{in.Selected.Keys})
	case !in.Immediate:
		return nil, nil
	}
	return registeredSegments(in.Nodes, keySets(in.Nodes))
}

// registeredSegments returns the segments of the nodes for each set of keys. A node
// counts only for keys that the driver registered on the node: labels alone do not say
// that the driver serves the node.
func registeredSegments(nodes []Node, sets [][]string) ([]Segment, error) {
	if len(sets) == 0 {
		return nil, errors.New("no available topology found: the driver has registered topology keys on no node; see whether it runs on any")
	}
	var segments []Segment
	for _, keys := range sets {
		for _, node := range nodes {
			if segment, found := SegmentWithKeys(node.Labels, keys); found && node.hasRegistered(keys) {
				segments = append(segments, segment)
			}
		}
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("topologyKeys %s were not found on any nodes: no node has labels for them", describeSets(sets))
	}
	return distinct(segments), nil
}

// hasRegistered reports whether the driver registered all the keys on the node.
func (n Node) hasRegistered(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(n.Keys, key) })
}

// keySets returns each set of topology keys that the driver registered, once and sorted.
// Sets differ during an upgrade of the driver, and where some nodes have more keys.
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

// describeSets returns sets of keys for an error message.
func describeSets(sets [][]string) string {
	texts := make([]string, 0, len(sets))
	for _, keys := range sets {
		texts = append(texts, strings.Join(keys, ", "))
	}
	return strings.Join(texts, " or ")
}

// requirement prefers the segments in circular order from index first.
func requirement(segments []Segment, first int) *csi.TopologyRequirement {
	preferred := slices.Concat(segments[first:], segments[:first])
	return &csi.TopologyRequirement{Requisite: toCSI(segments), Preferred: toCSI(preferred)}
}

// describe returns a segment for an error message.
func describe(segment Segment) string {
	labels := segment.Labels()
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ", ")
}

// preferredOffset returns the number that, modulo the number of segments, is the index
// of the claim's preferred segment. Claims of a StatefulSet are named
// TEMPLATE-SET-ORDINAL: the offset is the hash of SET plus the ordinal, so that replicas
// rotate through the segments and all claims of one replica share a segment. The numbers
// are those of csi-provisioner, so that a growing set continues the rotation.
func preferredOffset(claim string) uint32 {
	name, ordinal := claim, uint32(0)
	if base, number, found := cutLastDash(claim); found {
		if parsed, err := strconv.ParseUint(number, 10, 32); err == nil {
			name, ordinal = base, uint32(parsed)
			if _, set, found := cutLastDash(base); found {
				name = set
			}
		}
	}
	hash := fnv.New32()
	_, _ = hash.Write([]byte(name)) // never fails
	return hash.Sum32() + ordinal
}

// cutLastDash cuts the text at its last dash.
func cutLastDash(text string) (before, after string, found bool) {
	dash := strings.LastIndexByte(text, '-')
	if dash < 0 {
		return text, "", false
	}
	return text[:dash], text[dash+1:], true
}
