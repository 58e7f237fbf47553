package csimock_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// zones are topologies that name a zone each.
func zones(names ...string) []*csi.Topology {
	var topologies []*csi.Topology
	for _, name := range names {
		topologies = append(topologies, &csi.Topology{Segments: map[string]string{"zone": name}})
	}
	return topologies
}

// requisite asks for one of the zones.
func requisite(names ...string) *csi.TopologyRequirement {
	return &csi.TopologyRequirement{Requisite: zones(names...)}
}

func TestVolumeIsPlaced(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted *csi.TopologyRequirement
		code   codes.Code
		zone   string
	}{
		"in the first zone when nothing is asked":       {nil, codes.OK, "a"},
		"in the requisite zone":                         {requisite("b"), codes.OK, "b"},
		"in a requisite zone that the driver serves":    {requisite("c", "b"), codes.OK, "b"},
		"nowhere when no requisite zone is served":      {requisite("c"), codes.ResourceExhausted, ""},
		"in the preferred one of the requisite zones":   {&csi.TopologyRequirement{Requisite: zones("a", "b"), Preferred: zones("b", "a")}, codes.OK, "b"},
		"in the next when the preferred is not served":  {&csi.TopologyRequirement{Requisite: zones("c", "b"), Preferred: zones("c", "b")}, codes.OK, "b"},
		"in the first zone when only a wish is not met": {&csi.TopologyRequirement{Preferred: zones("c")}, codes.OK, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			request := volumeRequest("one")
			request.AccessibilityRequirements = tc.wanted
			response, err := driver.CreateVolume(t.Context(), request)
			expectCode(t, err, tc.code)
			if err == nil && response.GetVolume().GetAccessibleTopology()[0].GetSegments()["zone"] != tc.zone {
				t.Errorf("the volume is at %v, want zone %s", response.GetVolume().GetAccessibleTopology(), tc.zone)
			}
		})
	}
}

func TestCapacityOfAZoneThatIsNotServedIsNothing(t *testing.T) {
	_, driver := start(t, everything())
	for zone, want := range map[string]int64{"a": 10 * gib, "c": 0} {
		response, err := driver.GetCapacity(t.Context(), &csi.GetCapacityRequest{AccessibleTopology: zones(zone)[0]})
		expectCode(t, err, codes.OK)
		if got := response.GetAvailableCapacity(); got != want {
			t.Errorf("zone %s has %d bytes left, want %d", zone, got, want)
		}
	}
}

func TestNodeReportsItsTopology(t *testing.T) {
	_, driver := start(t, everything())
	response, err := driver.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	expectCode(t, err, codes.OK)
	if got := response.GetAccessibleTopology().GetSegments()["zone"]; got != "a" {
		t.Errorf("the node is in zone %q, want a", got)
	}
}

func TestNewRefusesAConfiguration(t *testing.T) {
	all := csimock.AllCapabilities()
	for name, config := range map[string]csimock.Config{
		"with a name that is no name":         {Name: "no name"},
		"with an empty other node":            {OtherNodes: []string{""}},
		"with a negative limit of volumes":    {MaxVolumesPerNode: -1},
		"with a negative capacity":            {Capacity: -1},
		"with an unknown capability":          {Capabilities: csimock.Capabilities{"fly": {}}},
		"with a topology but no capability":   {Topologies: []map[string]string{{"zone": "a"}}},
		"with a topology without segments":    {Capabilities: all, Topologies: []map[string]string{{}}},
		"with a topology key that is no key":  {Capabilities: all, Topologies: []map[string]string{{"/zone": "a"}}},
		"with a topology value of nothing":    {Capabilities: all, Topologies: []map[string]string{{"zone": ""}}},
		"with two keys that differ in case":   {Capabilities: all, Topologies: []map[string]string{{"zone": "a", "Zone": "a"}}},
		"with a fault on an unknown method":   {Faults: []csimock.Fault{{Method: "Destroy", Code: codes.Internal}}},
		"with a call log that is a directory": {CallLog: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := csimock.New(config); err == nil {
				t.Errorf("New(%+v) made a driver", config)
			}
		})
	}
}
