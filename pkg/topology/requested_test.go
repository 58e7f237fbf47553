package topology_test

import (
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

func TestRequested(t *testing.T) {
	a, b := map[string]string{"zone": "a"}, map[string]string{"zone": "b"}
	all := []topology.Segment{"rack=1,zone=a", "rack=2,zone=a", "zone=a", "zone=b", "host=x"}
	for name, tc := range map[string]struct {
		requirement *csi.TopologyRequirement
		want        []topology.Segment
	}{
		"no requirement":  {nil, all},
		"no segments":     {&csi.TopologyRequirement{}, all},
		"one segment":     {&csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: b}}}, []topology.Segment{"zone=b", "host=x"}},
		"preferred alone": {&csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: b}}}, []topology.Segment{"zone=b", "host=x"}},
		"wider than some": {&csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: a}}},
			[]topology.Segment{"rack=1,zone=a", "rack=2,zone=a", "zone=a", "host=x"}},
		"narrower than some": {&csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"zone": "a",
			"rack": "1"}}}}, []topology.Segment{"rack=1,zone=a", "zone=a", "host=x"}},
		"several":         {&csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: a}, {Segments: b}}}, all},
		"another cluster": {&csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"zone": "c"}}}}, []topology.Segment{"host=x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := topology.Requested(all, tc.requirement); !slices.Equal(got, tc.want) {
				t.Errorf("Requested = %v, want %v", got, tc.want)
			}
		})
	}
}
