package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
)

// Segment is a topology segment: one value for each topology key. A node lies in the
// segment if its labels have these values. The empty segment is the whole cluster.
//
// The text is "key=value,..." sorted by key, so that segments with the same labels are
// equal, and a Segment can be a map key.
type Segment string

var (
	// escape keeps the separators out of keys and values; no valid label has them, but
	// the allowed topologies of a storage class are not validated as labels.
	escape   = strings.NewReplacer("%", "%25", ",", "%2C", "=", "%3D")
	unescape = strings.NewReplacer("%25", "%", "%2C", ",", "%3D", "=")
)

// SegmentOf returns the segment with the labels.
func SegmentOf(labels map[string]string) Segment {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, escape.Replace(key)+"="+escape.Replace(labels[key]))
	}
	return Segment(strings.Join(pairs, ","))
}

// SegmentWithKeys returns the segment that the labels of a node have for the topology
// keys, and false if a label is missing.
func SegmentWithKeys(labels map[string]string, keys []string) (Segment, bool) {
	selected := make(map[string]string, len(keys))
	for _, key := range keys {
		value, found := labels[key]
		if !found {
			return "", false
		}
		selected[key] = value
	}
	return SegmentOf(selected), true
}

// Labels returns the values by topology key, never nil.
func (s Segment) Labels() map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(string(s), ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			labels[unescape.Replace(key)] = unescape.Replace(value)
		}
	}
	return labels
}

// Contains reports whether a node with the labels lies in the segment.
func (s Segment) Contains(labels map[string]string) bool {
	for key, value := range s.Labels() {
		if own, found := labels[key]; !found || own != value {
			return false
		}
	}
	return true
}

// overlap reports whether a node can lie in both segments: no topology key of both has
// two values.
func overlap(a, b map[string]string) bool {
	for key, value := range a {
		if other, found := b[key]; found && other != value {
			return false
		}
	}
	return true
}

// compare orders segments by number of keys, then by keys and values.
func compare(a, b map[string]string) int {
	if different := cmp.Compare(len(a), len(b)); different != 0 {
		return different
	}
	keys, others := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))
	for i, key := range keys {
		if different := cmp.Or(cmp.Compare(key, others[i]), cmp.Compare(a[key], b[others[i]])); different != 0 {
			return different
		}
	}
	return 0
}

// distinct returns each segment once, in the order of compare.
func distinct(segments []Segment) []Segment {
	labels := make(map[Segment]map[string]string, len(segments))
	for _, segment := range segments {
		if _, found := labels[segment]; !found {
			labels[segment] = segment.Labels()
		}
	}
	return slices.SortedFunc(maps.Keys(labels), func(a, b Segment) int { return compare(labels[a], labels[b]) })
}

// allowedSegments returns the segments that the allowed topologies of a storage class
// name: one segment for each combination of the values of a term.
func allowedSegments(terms []v1.TopologySelectorTerm) []Segment {
	var segments []Segment
	for _, term := range terms {
		if len(term.MatchLabelExpressions) == 0 {
			continue
		}
		combinations := []map[string]string{{}}
		for _, expression := range term.MatchLabelExpressions {
			combinations = combine(combinations, expression)
		}
		for _, labels := range combinations {
			segments = append(segments, SegmentOf(labels))
		}
	}
	return segments
}

// combine returns every combination extended by every value of the expression, without
// contradictions.
func combine(combinations []map[string]string, expression v1.TopologySelectorLabelRequirement) []map[string]string {
	var extended []map[string]string
	for _, value := range expression.Values {
		for _, labels := range combinations {
			if !overlap(labels, map[string]string{expression.Key: value}) {
				continue
			}
			narrower := maps.Clone(labels)
			narrower[expression.Key] = value
			extended = append(extended, narrower)
		}
	}
	return extended
}

func toCSI(segments []Segment) []*csi.Topology {
	topologies := make([]*csi.Topology, 0, len(segments))
	for _, segment := range segments {
		topologies = append(topologies, &csi.Topology{Segments: segment.Labels()})
	}
	return topologies
}
