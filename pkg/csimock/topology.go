package csimock

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The formats that CSI gives the keys and values of Topology.segments.
var (
	topologyPrefix = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	topologyName   = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$`)
)

// validateTopologies refuses segments that CSI does not allow.
func validateTopologies(topologies []map[string]string) error {
	for _, segments := range topologies {
		if len(segments) == 0 {
			return errors.New("a topology must have at least one segment")
		}
		seen := map[string]bool{}
		for key, value := range segments {
			if err := validateSegment(key, value); err != nil {
				return err
			}
			if folded := strings.ToLower(key); seen[folded] {
				return fmt.Errorf("topology key %q differs from another one only in upper and lower case", key)
			}
			seen[strings.ToLower(key)] = true
		}
	}
	return nil
}

// validateSegment refuses a key or value that CSI does not allow in a topology.
func validateSegment(key, value string) error {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	if !topologyName.MatchString(name) || prefixed && !topologyPrefix.MatchString(prefix) {
		return fmt.Errorf("topology key %q must look like zone or example.com/zone", key)
	}
	if !topologyName.MatchString(value) {
		return fmt.Errorf("value %q of topology key %q must have 1 to 63 letters, digits, dashes, underscores and dots",
			value, key)
	}
	return nil
}

// within reports whether the segments include all wanted segments.
func within(segments, wanted map[string]string) bool {
	for key, value := range wanted {
		if own, known := segments[key]; !known || own != value {
			return false
		}
	}
	return true
}

// selectTopology returns the topology of a new volume: the first preferred topology that
// the driver serves, else the first requisite one, else, without requisite topologies, the
// driver's first. If the driver serves no requisite topology, the error is
// ResourceExhausted.
func selectTopology(own []map[string]string, wanted *csi.TopologyRequirement) (map[string]string, error) {
	if len(own) == 0 {
		return nil, nil
	}
	for _, list := range [][]*csi.Topology{wanted.GetPreferred(), wanted.GetRequisite()} {
		for _, candidate := range list {
			if segments := findTopology(own, candidate.GetSegments()); segments != nil {
				return maps.Clone(segments), nil
			}
		}
	}
	if len(wanted.GetRequisite()) > 0 {
		return nil, status.Errorf(codes.ResourceExhausted, "the driver serves none of the %d requisite topologies",
			len(wanted.GetRequisite()))
	}
	return maps.Clone(own[0]), nil
}

// findTopology returns the driver's first topology with the wanted segments, nil for none.
func findTopology(own []map[string]string, wanted map[string]string) map[string]string {
	for _, segments := range own {
		if within(segments, wanted) {
			return segments
		}
	}
	return nil
}

// accessibleFrom reports whether a volume with the segments meets the requirement. Without
// requisite topologies every volume does.
func accessibleFrom(segments map[string]string, wanted *csi.TopologyRequirement) bool {
	for _, candidate := range wanted.GetRequisite() {
		if within(segments, candidate.GetSegments()) {
			return true
		}
	}
	return len(wanted.GetRequisite()) == 0
}
