package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Affinity returns the node affinity of a volume with the accessible topology, nil if
// all nodes reach the volume.
func Affinity(accessible []*csi.Topology) *v1.VolumeNodeAffinity {
	var terms []v1.NodeSelectorTerm
	for _, topology := range accessible {
		segments := topology.GetSegments()
		var term v1.NodeSelectorTerm
		for _, key := range slices.Sorted(maps.Keys(segments)) {
			term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{
				Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{segments[key]},
			})
		}
		if len(term.MatchExpressions) > 0 {
			terms = append(terms, term)
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}
}

// Invalid returns the reason why the accessible topology of a volume cannot be recorded, "" if it can.
func Invalid(accessible []*csi.Topology) string {
	for _, topology := range accessible {
		if reason := invalidLabel(topology.GetSegments()); reason != "" {
			return reason
		}
	}
	return ""
}

// Elsewhere returns why a volume is not where it was requested, "" if it is. A volume without
// accessible topology is reachable from every node; any other volume must be reachable from a
// requisite topology (CSI specification, "TopologyRequirement").
func Elsewhere(required *csi.TopologyRequirement, accessible []*csi.Topology) string {
	requested := len(required.GetRequisite()) == 0 || Affinity(accessible) == nil
	for _, topology := range accessible {
		requested = requested || overlapsAny(topology.GetSegments(), required.GetRequisite())
	}
	if !requested {
		return "the driver returned a volume that is not reachable from where it was asked for"
	}
	return ""
}

func overlapsAny(segments map[string]string, requisite []*csi.Topology) bool {
	return slices.ContainsFunc(requisite,
		func(topology *csi.Topology) bool { return overlap(segments, topology.GetSegments()) })
}

// invalidLabel returns the reason why no node can have the segments as labels, "" if a
// node can.
func invalidLabel(segments map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(segments)) {
		flaws := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(segments[key])...)
		if len(flaws) > 0 {
			return fmt.Sprintf("the driver returned the topology %s=%s, which is no label: %s", quoted(key),
				quoted(segments[key]), strings.Join(flaws, "; "))
		}
	}
	return ""
}

// longestQuote is the length in bytes of the longest text that error messages quote.
const longestQuote = 80

// quoted returns the quoted text, or the length of a long text: secrets are hidden only
// as a whole, so that a part of a long text might show a part of a secret.
func quoted(text string) string {
	if len(text) > longestQuote {
		return fmt.Sprintf("(%d bytes)", len(text))
	}
	return strconv.Quote(text)
}
