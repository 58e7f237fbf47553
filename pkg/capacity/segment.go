package capacity

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Segment is a part of the cluster: the nodes that have certain labels. Two
// segments of the same labels are equal. The empty one is the whole cluster.
type Segment string

// SegmentOf returns the segment of the nodes that have all of these labels.
func SegmentOf(labels map[string]string) Segment {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key]) // neither may contain the separators
	}
	return Segment(strings.Join(pairs, ","))
}

// Labels are those that the nodes of the segment have, never nil.
func (s Segment) Labels() map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(string(s), ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			labels[key] = value
		}
	}
	return labels
}

// SegmentOfNode returns the segment that a node lies in for the driver. It is false
// if the driver does not run there, or a label that it announced is not there yet.
func SegmentOfNode(driver string, registered *storagev1.CSINode, node *v1.Node) (Segment, bool) {
	if registered == nil || node == nil {
		return "", false
	}
	at := slices.IndexFunc(registered.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	if at < 0 {
		return "", false
	}
	labels := map[string]string{}
	for _, key := range registered.Spec.Drivers[at].TopologyKeys {
		value, found := node.Labels[key]
		if !found {
			return "", false
		}
		labels[key] = value
	}
	return SegmentOf(labels), true
}

// nowhere is the segment of a selector that names none. No node lies in it.
const nowhere Segment = "?"

// segmentOfSelector returns the segment that an object names.
func segmentOfSelector(selector *metav1.LabelSelector) Segment {
	if selector == nil || len(selector.MatchExpressions) > 0 {
		return nowhere
	}
	return SegmentOf(selector.MatchLabels)
}

// SegmentsOfVolume returns the segments that a volume is reached from, as far as
// its node affinity is made of segments; none if every node reaches it.
func SegmentsOfVolume(volume *v1.PersistentVolume) []Segment {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	var segments []Segment
	for i := range affinity.Required.NodeSelectorTerms {
		if segment, whole := segmentOfTerm(&affinity.Required.NodeSelectorTerms[i]); whole {
			segments = append(segments, segment)
		}
	}
	return segments
}

func segmentOfTerm(term *v1.NodeSelectorTerm) (Segment, bool) {
	if len(term.MatchFields) > 0 {
		return "", false
	}
	labels := map[string]string{}
	for _, match := range term.MatchExpressions {
		if match.Operator != v1.NodeSelectorOpIn || len(match.Values) != 1 {
			return "", false
		}
		labels[match.Key] = match.Values[0]
	}
	return SegmentOf(labels), true
}
