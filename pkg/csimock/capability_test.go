package csimock_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// advertisedNames returns the names of all capabilities that a driver
// advertises, each with its service in front.
func advertisedNames(t *testing.T, driver clients) []string {
	t.Helper()
	plugin, err := driver.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{})
	expectCode(t, err, codes.OK)
	controller, err := driver.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	expectCode(t, err, codes.OK)
	node, err := driver.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	expectCode(t, err, codes.OK)
	var names []string
	for _, c := range plugin.GetCapabilities() {
		if c.GetService() != nil {
			names = append(names, "plugin "+c.GetService().GetType().String())
		} else {
			names = append(names, "plugin expansion "+c.GetVolumeExpansion().GetType().String())
		}
	}
	for _, c := range controller.GetCapabilities() {
		names = append(names, "controller "+c.GetRpc().GetType().String())
	}
	for _, c := range node.GetCapabilities() {
		names = append(names, "node "+c.GetRpc().GetType().String())
	}
	return names
}

// switches lists, for each capability that is switched off, the CSI capabilities that are
// not advertised and the calls that are not implemented.
var switches = map[csimock.Capability]struct {
	advertised []string
	methods    []string
}{
	csimock.CreateDelete: {
		[]string{
			"plugin GROUP_CONTROLLER_SERVICE", "plugin SNAPSHOT_ACCESSIBILITY_CONSTRAINTS", "controller CREATE_DELETE_VOLUME",
			"controller CREATE_DELETE_SNAPSHOT",
			"controller LIST_SNAPSHOTS", "controller GET_SNAPSHOT", "controller CLONE_VOLUME",
		},
		[]string{"Controller/CreateVolume", "Controller/DeleteVolume", "Controller/CreateSnapshot"},
	},
	csimock.List: {
		[]string{"controller LIST_VOLUMES", "controller LIST_VOLUMES_PUBLISHED_NODES", "controller LIST_SNAPSHOTS",
			"controller LIST_VOLUME_HEALTH"},
		[]string{"Controller/ListVolumes", "Controller/ListSnapshots", "Controller/ControllerListVolumeHealth"},
	},
	csimock.Capacity: {[]string{"controller GET_CAPACITY"}, []string{"Controller/GetCapacity"}},
	csimock.Snapshots: {
		[]string{
			"plugin GROUP_CONTROLLER_SERVICE", "plugin SNAPSHOT_ACCESSIBILITY_CONSTRAINTS", "controller CREATE_DELETE_SNAPSHOT",
			"controller LIST_SNAPSHOTS", "controller GET_SNAPSHOT",
		},
		[]string{"Controller/GetSnapshot", "Controller/CreateSnapshot", "Controller/DeleteSnapshot",
			"Controller/ListSnapshots", "GroupController/CreateVolumeGroupSnapshot"},
	},
	csimock.GroupSnapshots: {
		[]string{"plugin GROUP_CONTROLLER_SERVICE"},
		[]string{
			"GroupController/GroupControllerGetCapabilities", "GroupController/CreateVolumeGroupSnapshot",
			"GroupController/DeleteVolumeGroupSnapshot", "GroupController/GetVolumeGroupSnapshot",
		},
	},
	csimock.Clones: {[]string{"controller CLONE_VOLUME"}, nil},
	csimock.Expansion: {
		[]string{"plugin expansion ONLINE", "controller EXPAND_VOLUME", "node EXPAND_VOLUME"},
		[]string{"Controller/ControllerExpandVolume", "Node/NodeExpandVolume"},
	},
	csimock.Modify: {[]string{"controller MODIFY_VOLUME"}, []string{"Controller/ControllerModifyVolume"}},
	csimock.Publish: {
		[]string{"controller PUBLISH_UNPUBLISH_VOLUME", "controller PUBLISH_READONLY",
			"controller LIST_VOLUMES_PUBLISHED_NODES"},
		[]string{"Controller/ControllerPublishVolume", "Controller/ControllerUnpublishVolume"},
	},
	csimock.Topology: {[]string{"plugin VOLUME_ACCESSIBILITY_CONSTRAINTS",
		"plugin SNAPSHOT_ACCESSIBILITY_CONSTRAINTS"}, nil},
	csimock.SnapshotTopology: {[]string{"plugin SNAPSHOT_ACCESSIBILITY_CONSTRAINTS"}, nil},
	csimock.Get: {[]string{"controller GET_VOLUME", "controller GET_SNAPSHOT"},
		[]string{"Controller/ControllerGetVolume", "Controller/GetSnapshot"}},
	csimock.Health: {
		[]string{"controller GET_VOLUME_HEALTH", "controller LIST_VOLUME_HEALTH", "node GET_VOLUME_HEALTH",
			"node GET_STORAGE_HEALTH"},
		[]string{
			"Controller/ControllerGetVolumeHealth", "Controller/ControllerListVolumeHealth",
			"Node/NodeGetVolumeHealth", "Node/NodeGetStorageHealth",
		},
	},
	csimock.Stage: {[]string{"node STAGE_UNSTAGE_VOLUME"},
		[]string{"Node/NodeStageVolume", "Node/NodeUnstageVolume"}},
	csimock.Stats:        {[]string{"node GET_VOLUME_STATS"}, []string{"Node/NodeGetVolumeStats"}},
	csimock.SingleWriter: {[]string{"controller SINGLE_NODE_MULTI_WRITER", "node SINGLE_NODE_MULTI_WRITER"}, nil},
	csimock.MountGroup:   {[]string{"node VOLUME_MOUNT_GROUP"}, nil},
}

func TestCapabilityOffIsUnimplemented(t *testing.T) {
	_, complete := start(t, csimock.Config{Capabilities: csimock.AllCapabilities()})
	all := advertisedNames(t, complete)
	for _, name := range csimock.CapabilityNames() {
		t.Run(name, func(t *testing.T) {
			capability := csimock.Capability(name)
			off := switches[capability]
			config := csimock.Config{Capabilities: csimock.AllCapabilities().Without(capability)}
			socket := filepath.Join(shortDir(t), "csi.sock")
			if _, err := csimock.Start(t.Context(), config, socket); err != nil {
				t.Fatal(err)
			}
			connection := dial(t, socket)
			got := advertisedNames(t, clientsOf(connection))
			want := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(off.advertised, name) })
			if !slices.Equal(got, want) {
				t.Errorf("advertised are %v, want %v", got, want)
			}
			for _, method := range off.methods {
				err := connection.Invoke(t.Context(), "/csi.v1."+method, &emptypb.Empty{}, &emptypb.Empty{})
				expectCode(t, err, codes.Unimplemented)
			}
		})
	}
}

func TestRequestWithCapabilityOffIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		off    csimock.Capability
		change func(*csi.CreateVolumeRequest)
	}{
		"mutable parameters":    {csimock.Modify, func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"iops": "1"} }},
		"source snapshot":       {csimock.Snapshots, func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = fromSnapshot("snap-1") }},
		"source volume":         {csimock.Clones, func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = fromVolume("vol-1") }},
		"topology requirements": {csimock.Topology, func(r *csi.CreateVolumeRequest) { r.AccessibilityRequirements = requisite("a") }},
		"access mode for several writers": {csimock.SingleWriter, func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}},
		"mount group": {csimock.MountGroup, func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().VolumeMountGroup = "1000" }},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, csimock.Config{Capabilities: csimock.AllCapabilities().Without(tc.off)})
			request := volumeRequest("one")
			tc.change(request)
			_, err := driver.CreateVolume(t.Context(), request)
			expectCode(t, err, codes.InvalidArgument)
		})
	}
}

func TestDefaultCapabilities(t *testing.T) {
	_, complete := start(t, csimock.Config{Capabilities: csimock.AllCapabilities()})
	_, usual := start(t, csimock.Config{})
	missing := slices.DeleteFunc(advertisedNames(t, complete), func(name string) bool {
		return slices.Contains(advertisedNames(t, usual), name)
	})
	want := append(slices.Clone(switches[csimock.Topology].advertised), switches[csimock.Publish].advertised...)
	slices.Sort(missing)
	slices.Sort(want)
	if !slices.Equal(missing, want) {
		t.Errorf("missing by default are %v, want %v", missing, want)
	}
}

func TestParseCapabilities(t *testing.T) {
	_, err := csimock.ParseCapabilities([]string{"list", "clone"})
	if err == nil || !strings.Contains(err.Error(), `"clone"`) || !strings.Contains(err.Error(), "clones") {
		t.Errorf("the error is %v", err)
	}
	parsed, err := csimock.ParseCapabilities(csimock.CapabilityNames())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(csimock.Capabilities{}.With(parsed...)),
		fmt.Sprint(csimock.AllCapabilities()); got != want {
		t.Errorf("parsing all names gives %s, want %s", got, want)
	}
}
