package topology

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Requested returns the segments in which a volume with the requirement can be: those that
// share a node with a requested segment. These are all if the requirement has no segment.
func Requested(all []Segment, requirement *csi.TopologyRequirement) []Segment {
	wanted := slices.Concat(requirement.GetRequisite(), requirement.GetPreferred())
	if len(wanted) == 0 {
		return all
	}
	exact := make(map[Segment]bool, len(wanted))
	for _, topology := range wanted {
		exact[SegmentOf(topology.GetSegments())] = true
	}
	var requested []Segment
	for _, segment := range all {
		if exact[segment] || overlapsAny(segment.Labels(), wanted) {
			requested = append(requested, segment)
		}
	}
	return requested
}
