package capacity

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// SegmentOfNode returns the topology segment of a node for the driver, and false if the
// driver does not run on the node or the node still lacks a label of a topology key.
func SegmentOfNode(driver string, csiNode *storagev1.CSINode, node *v1.Node) (topology.Segment, bool) {
	if csiNode == nil || node == nil {
		return "", false
	}
	drivers := csiNode.Spec.Drivers
	at := slices.IndexFunc(drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	if at < 0 {
		return "", false
	}
	return topology.SegmentWithKeys(node.Labels, drivers[at].TopologyKeys)
}

// noSegment stands for a label selector that is not a segment. No node lies in it.
const noSegment topology.Segment = "?"

// segmentOfSelector returns the segment of an object's node topology.
func segmentOfSelector(selector *metav1.LabelSelector) topology.Segment {
	if selector == nil || len(selector.MatchExpressions) > 0 {
		return noSegment
	}
	return topology.SegmentOf(selector.MatchLabels)
}

// SegmentsOfVolume returns the segments in the node affinity of a volume. Terms that are
// not a segment are left out.
func SegmentsOfVolume(volume *v1.PersistentVolume) []topology.Segment {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	var segments []topology.Segment
	for i := range affinity.Required.NodeSelectorTerms {
		if segment, whole := segmentOfTerm(&affinity.Required.NodeSelectorTerms[i]); whole {
			segments = append(segments, segment)
		}
	}
	return segments
}

// segmentOfTerm returns the segment of a term, and false if the term is not a segment.
func segmentOfTerm(term *v1.NodeSelectorTerm) (topology.Segment, bool) {
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
	return topology.SegmentOf(labels), true
}
