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

// Affinity returns the nodes that reach a volume, nil for all: a node must lie in
// one of the places.
func Affinity(accessible []*csi.Topology) *v1.VolumeNodeAffinity {
	var terms []v1.NodeSelectorTerm
	for _, place := range accessible {
		segments := place.GetSegments()
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

// Unusable says what is wrong with the places from which a new volume is
// reachable, "" if nothing is. A volume that names none is reachable from
// everywhere; otherwise it must be reachable from a requisite place (CSI
// specification, "TopologyRequirement").
func Unusable(required *csi.TopologyRequirement, accessible []*csi.Topology) string {
	met := len(required.GetRequisite()) == 0 || Affinity(accessible) == nil
	for _, place := range accessible {
		if flaw := unlabelled(place.GetSegments()); flaw != "" {
			return flaw
		}
		met = met || meetsAny(place.GetSegments(), required.GetRequisite())
	}
	if !met {
		return "the driver returned a volume that is not reachable from where it was asked for"
	}
	return ""
}

func meetsAny(place Place, requisite []*csi.Topology) bool {
	return slices.ContainsFunc(requisite, func(wanted *csi.Topology) bool { return place.Meets(wanted.GetSegments()) })
}

// unlabelled names a segment that no node can have as a label.
func unlabelled(segments map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(segments)) {
		flaws := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(segments[key])...)
		if len(flaws) > 0 {
			return fmt.Sprintf("the driver returned the topology %s=%s, which is no label: %s", quoted(key), quoted(segments[key]), strings.Join(flaws, "; "))
		}
	}
	return ""
}

// longestQuote is in bytes; a label is hardly longer.
const longestQuote = 80

// quoted is a text, or how long it is. Of a long one no part is shown: it may be that
// of a secret, which is found only as a whole.
func quoted(text string) string {
	if len(text) > longestQuote {
		return fmt.Sprintf("(%d bytes)", len(text))
	}
	return strconv.Quote(text)
}
