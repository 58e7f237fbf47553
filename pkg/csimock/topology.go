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
		return fmt.Errorf("value %q of topology key %q must have 1 to 63 letters, digits, dashes, underscores and dots", value, key)
	}
	return nil
}

// within reports whether a place with the given segments is inside the part of
// the world that wanted describes.
func within(segments, wanted map[string]string) bool {
	for key, value := range wanted {
		if own, known := segments[key]; !known || own != value {
			return false
		}
	}
	return true
}

// chooseTopology returns the place for a new volume: the first preferred one
// that the driver serves, else the first requisite one, else, if nothing is
// requisite, the first of its own. It fails with ResourceExhausted when the
// driver serves none of the requisite places.
func chooseTopology(own []map[string]string, wanted *csi.TopologyRequirement) (map[string]string, error) {
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
		return nil, status.Errorf(codes.ResourceExhausted, "the driver serves none of the %d requisite topologies", len(wanted.GetRequisite()))
	}
	return maps.Clone(own[0]), nil
}

// findTopology returns the first of the driver's own topologies that lies
// within wanted, nil if there is none.
func findTopology(own []map[string]string, wanted map[string]string) map[string]string {
	for _, segments := range own {
		if within(segments, wanted) {
			return segments
		}
	}
	return nil
}

// accessibleFrom reports whether a volume in the place given by segments meets
// the requirement; without requisite topologies every place does.
func accessibleFrom(segments map[string]string, wanted *csi.TopologyRequirement) bool {
	for _, candidate := range wanted.GetRequisite() {
		if within(segments, candidate.GetSegments()) {
			return true
		}
	}
	return len(wanted.GetRequisite()) == 0
}
