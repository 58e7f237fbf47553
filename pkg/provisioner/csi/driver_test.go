package csi_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// connect starts a mock driver and connects to it.
func connect(t *testing.T, mock csimock.Config, gate bool) *csi.Driver {
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
		Address: socket, Timeout: time.Minute, Topology: gate,
		Metrics: csi.NewMetrics(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return driver
}

func TestDriverReportsTopologyAndCapacity(t *testing.T) {
	node := map[string]string{"host": "1"}
	driver := connect(t, csimock.Config{Capacity: 1 << 20, Capabilities: csimock.DefaultCapabilities().
		With(csimock.Topology), Topologies: []map[string]string{node}}, true)
	if !driver.HasTopology() || !driver.ReportsCapacity() || !driver.Clones() || !driver.Snapshots() {
		t.Error("a capability of the driver is missing")
	}
	reported, err := driver.NodeTopology(t.Context())
	if diff := cmp.Diff(node, reported); err != nil || diff != "" {
		t.Errorf("node topology %v, %v", reported, err)
	}
	for segment, want := range map[topology.Segment]int64{"host=1": 1 << 20, "host=2": 0} {
		response, err := driver.GetCapacity(t.Context(), capacity.Request(segment, nil))
		if err != nil || response.GetAvailableCapacity() != want {
			t.Errorf("segment %s has capacity %d, %v, want %d", segment, response.GetAvailableCapacity(), err, want)
		}
	}
}

func TestTopologyGateOffMeansNoTopology(t *testing.T) {
	driver := connect(t, csimock.Config{Capabilities: csimock.DefaultCapabilities().With(csimock.Topology)}, false)
	if driver.HasTopology() {
		t.Error("the driver has topology")
	}
}

func TestDriverWithoutTopologyReportsNone(t *testing.T) {
	driver := connect(t, csimock.Config{}, true)
	reported, err := driver.NodeTopology(t.Context())
	if err != nil || len(reported) != 0 {
		t.Errorf("node topology %v, %v", reported, err)
	}
	if _, err := driver.GetCapacity(t.Context(), capacity.Request(topology.SegmentOf(reported), nil)); err != nil {
		t.Errorf("capacity: %v", err)
	}
}
