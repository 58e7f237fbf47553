package csi_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

func connect(t *testing.T, mock csimock.Config, topology bool) *csi.Driver {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	server, err := csimock.Start(t.Context(), mock, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	driver, err := csi.Connect(t.Context(), csi.Config{
		Address: socket, Timeout: time.Minute, Topology: topology,
		Metrics: csi.NewMetrics(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return driver
}

func TestADriverTellsWhereItsNodeIsAndWhatIsLeftThere(t *testing.T) {
	here := map[string]string{"host": "1"}
	driver := connect(t, csimock.Config{Capacity: 1 << 20, Capabilities: csimock.DefaultCapabilities().With(csimock.Topology), Topologies: []map[string]string{here}}, true)
	if !driver.HasTopology() || !driver.TellsCapacity() || !driver.Clones() || !driver.Snapshots() {
		t.Error("the driver can do more than it is thought to")
	}
	topology, err := driver.NodeTopology(t.Context())
	if diff := cmp.Diff(here, topology); err != nil || diff != "" {
		t.Errorf("the node is at %v, %v", topology, err)
	}
	for segment, want := range map[capacity.Segment]int64{"host=1": 1 << 20, "host=2": 0} {
		response, err := driver.GetCapacity(t.Context(), capacity.Request(segment, nil))
		if err != nil || response.GetAvailableCapacity() != want {
			t.Errorf("%s has %d, %v, want %d", segment, response.GetAvailableCapacity(), err, want)
		}
	}
}

func TestWithTheGateOffADriverHasNoTopology(t *testing.T) {
	driver := connect(t, csimock.Config{Capabilities: csimock.DefaultCapabilities().With(csimock.Topology)}, false)
	if driver.HasTopology() {
		t.Error("the driver has topology")
	}
}

func TestADriverWithoutTopologyTellsNoPlace(t *testing.T) {
	driver := connect(t, csimock.Config{}, true)
	topology, err := driver.NodeTopology(t.Context())
	if err != nil || len(topology) != 0 {
		t.Errorf("the node is at %v, %v", topology, err)
	}
	if _, err := driver.GetCapacity(t.Context(), capacity.Request(capacity.SegmentOf(topology), nil)); err != nil {
		t.Errorf("capacity: %v", err)
	}
}
