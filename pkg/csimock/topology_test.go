package csimock_test

import (
	"path/filepath"
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

func TestTopologyOfNewVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted *csi.TopologyRequirement
		code   codes.Code
		zone   string
	}{
		"no requirement":                            {nil, codes.OK, "a"},
		"requisite zone":                            {requisite("b"), codes.OK, "b"},
		"requisite zones, one served":               {requisite("c", "b"), codes.OK, "b"},
		"requisite zones, none served":              {requisite("c"), codes.ResourceExhausted, ""},
		"preferred zone":                            {&csi.TopologyRequirement{Requisite: zones("a", "b"), Preferred: zones("b", "a")}, codes.OK, "b"},
		"preferred zone not served":                 {&csi.TopologyRequirement{Requisite: zones("c", "b"), Preferred: zones("c", "b")}, codes.OK, "b"},
		"preferred zone not served, none requisite": {&csi.TopologyRequirement{Preferred: zones("c")}, codes.OK, "a"},
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

func TestSnapshotTopology(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted *csi.TopologyRequirement
		code   codes.Code
		zone   string
	}{
		"no requirement":                            {nil, codes.OK, "b"},
		"requisite zone":                            {requisite("a"), codes.OK, "a"},
		"preferred zone":                            {&csi.TopologyRequirement{Requisite: zones("a", "b"), Preferred: zones("b", "a")}, codes.OK, "b"},
		"requisite zone not served":                 {requisite("c"), codes.ResourceExhausted, ""},
		"empty requirement":                         {&csi.TopologyRequirement{}, codes.InvalidArgument, ""},
		"preferred zone not served, none requisite": {&csi.TopologyRequirement{Preferred: zones("c")}, codes.OK, "a"},
		"requisite zones, one served":               {requisite("c", "b"), codes.OK, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			request := &csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: createIn(t, driver, "b"),
				AccessibilityRequirements: tc.wanted}
			response, err := driver.CreateSnapshot(t.Context(), request)
			expectCode(t, err, tc.code)
			if tc.code == codes.OK {
				expectZone(t, response.GetSnapshot().GetAccessibleTopology(), tc.zone)
				expectZone(t, getSnapshot(t, driver, response.GetSnapshot().GetSnapshotId(), codes.OK).GetAccessibleTopology(),
					tc.zone)
			}
		})
	}
}

// createIn creates a volume in a zone and returns its ID.
func createIn(t *testing.T, driver clients, zone string) string {
	t.Helper()
	request := volumeRequest("source")
	request.AccessibilityRequirements = requisite(zone)
	return create(t, driver, request)
}

// expectZone compares the zone of a volume or a snapshot.
func expectZone(t *testing.T, topologies []*csi.Topology, want string) {
	t.Helper()
	if len(topologies) != 1 || topologies[0].GetSegments()["zone"] != want {
		t.Errorf("the topology is %v, want zone %s", topologies, want)
	}
}

func TestSnapshotKeepsItsTopology(t *testing.T) {
	config := everything()
	config.StateFile = filepath.Join(t.TempDir(), "state.json")
	server, driver := start(t, config)
	request := &csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: createIn(t, driver, "b")}
	for _, tc := range []struct {
		zone string
		want codes.Code
	}{{"b", codes.OK}, {"b", codes.OK}, {"a", codes.AlreadyExists}} {
		request.AccessibilityRequirements = requisite(tc.zone)
		_, err := driver.CreateSnapshot(t.Context(), request)
		expectCode(t, err, tc.want)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, driver = start(t, config)
	list, err := driver.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
	expectCode(t, err, codes.OK)
	expectZone(t, list.GetEntries()[0].GetSnapshot().GetAccessibleTopology(), "b")
}

func TestRestoredVolumeHasSnapshotTopology(t *testing.T) {
	_, driver := start(t, everything())
	snapshot := takeSnapshot(t, driver, "snapshot", createIn(t, driver, "b"))
	request := volumeRequest("restored")
	request.VolumeContentSource = fromSnapshot(snapshot)
	request.AccessibilityRequirements = requisite("a")
	_, err := driver.CreateVolume(t.Context(), request)
	expectCode(t, err, codes.ResourceExhausted)
	for name, wanted := range map[string]*csi.TopologyRequirement{"anywhere": nil, "preferred": requisite("a", "b")} {
		request.Name, request.AccessibilityRequirements = name, wanted
		response, err := driver.CreateVolume(t.Context(), request)
		expectCode(t, err, codes.OK)
		expectZone(t, response.GetVolume().GetAccessibleTopology(), "b")
	}
}

func TestSnapshotTopologyOffIsIgnored(t *testing.T) {
	config := everything()
	config.Capabilities = csimock.AllCapabilities().Without(csimock.SnapshotTopology)
	_, driver := start(t, config)
	source := createIn(t, driver, "b")
	_, err := driver.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "one", SourceVolumeId: source,
		AccessibilityRequirements: requisite("b")})
	expectCode(t, err, codes.InvalidArgument)
	snapshot := takeSnapshot(t, driver, "two", source)
	if got := getSnapshot(t, driver, snapshot, codes.OK).GetAccessibleTopology(); got != nil {
		t.Errorf("the topology of the snapshot is %v", got)
	}
	request := volumeRequest("restored")
	request.VolumeContentSource, request.AccessibilityRequirements = fromSnapshot(snapshot), requisite("a")
	create(t, driver, request)
}

func TestCapacityOfUnservedZoneIsZero(t *testing.T) {
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

func TestInvalidConfigurationIsRefused(t *testing.T) {
	all := csimock.AllCapabilities()
	for name, config := range map[string]csimock.Config{
		"invalid name":                {Name: "no name"},
		"empty other node":            {OtherNodes: []string{""}},
		"negative volume limit":       {MaxVolumesPerNode: -1},
		"negative capacity":           {Capacity: -1},
		"unknown capability":          {Capabilities: csimock.Capabilities{"fly": {}}},
		"topology without capability": {Topologies: []map[string]string{{"zone": "a"}}},
		"topology without segments":   {Capabilities: all, Topologies: []map[string]string{{}}},
		"invalid topology key":        {Capabilities: all, Topologies: []map[string]string{{"/zone": "a"}}},
		"empty topology value":        {Capabilities: all, Topologies: []map[string]string{{"zone": ""}}},
		"keys that differ in case":    {Capabilities: all, Topologies: []map[string]string{{"zone": "a", "Zone": "a"}}},
		"fault of unknown method":     {Faults: []csimock.Fault{{Method: "Destroy", Code: codes.Internal}}},
		"call log is a directory":     {CallLog: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := csimock.New(config); err == nil {
				t.Errorf("New(%+v) made a driver", config)
			}
		})
	}
}
