package provision_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
}

func fromVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
}

func zoneTopology(zone string) []*csi.Topology {
	return []*csi.Topology{{Segments: map[string]string{"zone": zone}}}
}

func TestUnusableResponseIsDescribed(t *testing.T) {
	for name, tc := range map[string]struct {
		request *csi.CreateVolumeRequest
		volume  *csi.Volume
		names   string
	}{
		"requested size":                 {nil, &csi.Volume{VolumeId: "h", CapacityBytes: 10}, ""},
		"larger than requested":          {nil, &csi.Volume{VolumeId: "h", CapacityBytes: 11}, ""},
		"no size":                        {nil, &csi.Volume{VolumeId: "h"}, ""},
		"path of a cloud disk as handle": {nil, &csi.Volume{VolumeId: "/subscriptions/" + strings.Repeat("x", 250)}, ""},
		"no volume":                      {nil, nil, "no volume handle"},
		"no handle":                      {nil, &csi.Volume{CapacityBytes: 10}, "no volume handle"},
		"handle too long":                {nil, &csi.Volume{VolumeId: strings.Repeat("h", 513)}, "513 bytes"},
		"handle with control characters": {nil, &csi.Volume{VolumeId: "a\x00b"}, "control characters"},
		"smaller than requested":         {nil, &csi.Volume{VolumeId: "h", CapacityBytes: 9}, "capacity 9"},
		"negative size":                  {nil, &csi.Volume{VolumeId: "h", CapacityBytes: -1}, "capacity -1"},
		"snapshot restored": {&csi.CreateVolumeRequest{VolumeContentSource: fromSnapshot("s")},
			&csi.Volume{VolumeId: "h", ContentSource: fromSnapshot("projects/p/s")}, ""},
		"snapshot missing": {&csi.CreateVolumeRequest{VolumeContentSource: fromSnapshot("s")}, &csi.Volume{VolumeId: "h"}, "snapshot"},
		"clone instead of snapshot": {&csi.CreateVolumeRequest{VolumeContentSource: fromSnapshot("s")},
			&csi.Volume{VolumeId: "h", ContentSource: fromVolume("s")}, "snapshot"},
		"volume cloned": {&csi.CreateVolumeRequest{VolumeContentSource: fromVolume("v")},
			&csi.Volume{VolumeId: "h", ContentSource: fromVolume("v")}, ""},
		"clone source missing":              {&csi.CreateVolumeRequest{VolumeContentSource: fromVolume("v")}, &csi.Volume{VolumeId: "h"}, "source volume"},
		"requested topology":                {&csi.CreateVolumeRequest{AccessibilityRequirements: &csi.TopologyRequirement{Requisite: zoneTopology("a")}}, &csi.Volume{VolumeId: "h", AccessibleTopology: zoneTopology("a")}, ""},
		"other topology":                    {&csi.CreateVolumeRequest{AccessibilityRequirements: &csi.TopologyRequirement{Requisite: zoneTopology("a")}}, &csi.Volume{VolumeId: "h", AccessibleTopology: zoneTopology("b")}, ""},
		"topology value invalid as a label": {nil, &csi.Volume{VolumeId: "h", AccessibleTopology: zoneTopology("?")}, "no label"},
	} {
		t.Run(name, func(t *testing.T) {
			request := tc.request
			if request == nil {
				request = &csi.CreateVolumeRequest{}
			}
			request.CapacityRange = &csi.CapacityRange{RequiredBytes: 10}
			if tc.request != nil {
				request.CapacityRange = nil
			}
			reason := provision.Unusable(request, tc.volume, true)
			if (reason == "") != (tc.names == "") || !strings.Contains(reason, tc.names) {
				t.Errorf("Unusable = %q, want it to name %q", reason, tc.names)
			}
		})
	}
}

func TestTopologyIsComparedWithWhatIsKnown(t *testing.T) {
	request := &csi.CreateVolumeRequest{AccessibilityRequirements: &csi.TopologyRequirement{Requisite: zoneTopology("a")}}
	for _, tc := range []struct {
		hasTopology       bool
		zone              string
		usable, requested bool
	}{
		{true, "a", true, true}, {true, "b", true, false}, {true, "?", false, false},
		{false, "a", true, true}, {false, "?", true, false},
	} {
		volume := &csi.Volume{VolumeId: "h", AccessibleTopology: zoneTopology(tc.zone)}
		unusable, elsewhere := provision.Unusable(request, volume, tc.hasTopology), provision.Elsewhere(request, volume)
		if (unusable == "") != tc.usable || (elsewhere == "") != tc.requested {
			t.Errorf("topology: %t, volume in zone %s: %q, %q", tc.hasTopology, tc.zone, unusable, elsewhere)
		}
	}
}

func FuzzHandle(f *testing.F) {
	for _, seed := range []string{"", "h", "a/b#c", strings.Repeat("x", 600), "\x00", "\xff", "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, handle string) {
		volume := &csi.Volume{VolumeId: handle}
		if reason := provision.Unusable(&csi.CreateVolumeRequest{}, volume, true); reason != "" {
			if len(reason) > 200 {
				t.Errorf("the reason has %d bytes", len(reason))
			}
			return
		}
		object := newVolume(t, input(), volume)
		if got := object.Spec.CSI.VolumeHandle; got != handle || strings.ToValidUTF8(got, "") != got {
			t.Errorf("the handle %q became %q", handle, got)
		}
	})
}
