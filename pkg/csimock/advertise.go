package csimock

import "github.com/container-storage-interface/spec/lib/go/csi"

// gates lists the capabilities that each method needs.
var gates = map[string][]Capability{
	"CreateVolume":                   {CreateDelete},
	"DeleteVolume":                   {CreateDelete},
	"ControllerPublishVolume":        {Publish},
	"ControllerUnpublishVolume":      {Publish},
	"ListVolumes":                    {List},
	"GetCapacity":                    {Capacity},
	"CreateSnapshot":                 {Snapshots},
	"DeleteSnapshot":                 {Snapshots},
	"ListSnapshots":                  {List, Snapshots},
	"GetSnapshot":                    {Get, Snapshots},
	"ControllerExpandVolume":         {Expansion},
	"ControllerModifyVolume":         {Modify},
	"ControllerGetVolume":            {Get},
	"ControllerGetVolumeHealth":      {Health},
	"ControllerListVolumeHealth":     {Health, List},
	"GroupControllerGetCapabilities": {GroupSnapshots},
	"CreateVolumeGroupSnapshot":      {GroupSnapshots},
	"DeleteVolumeGroupSnapshot":      {GroupSnapshots},
	"GetVolumeGroupSnapshot":         {GroupSnapshots},
	"NodeStageVolume":                {Stage},
	"NodeUnstageVolume":              {Stage},
	"NodeGetVolumeStats":             {Stats},
	"NodeGetVolumeHealth":            {Health},
	"NodeGetStorageHealth":           {Health},
	"NodeExpandVolume":               {Expansion},
}

// advertisement is a CSI capability, with T the enum of the service, and the capabilities
// of this package that it needs.
type advertisement[T any] struct {
	kind  T
	needs []Capability
}

// pluginServices lists the advertisements of GetPluginCapabilities.
var pluginServices = []advertisement[csi.PluginCapability_Service_Type]{
	{csi.PluginCapability_Service_CONTROLLER_SERVICE, nil},
	{csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE, []Capability{GroupSnapshots}},
	{csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS, []Capability{Topology}},
	{csi.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS, []Capability{SnapshotTopology}},
}

// controllerRPCs lists the advertisements of ControllerGetCapabilities.
var controllerRPCs = []advertisement[csi.ControllerServiceCapability_RPC_Type]{
	{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, []Capability{CreateDelete}},
	{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, []Capability{Publish}},
	{csi.ControllerServiceCapability_RPC_PUBLISH_READONLY, []Capability{Publish}},
	{csi.ControllerServiceCapability_RPC_LIST_VOLUMES, []Capability{List}},
	{csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES, []Capability{List, Publish}},
	{csi.ControllerServiceCapability_RPC_GET_CAPACITY, []Capability{Capacity}},
	{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, []Capability{Snapshots}},
	{csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS, []Capability{List, Snapshots}},
	{csi.ControllerServiceCapability_RPC_CLONE_VOLUME, []Capability{Clones}},
	{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME, []Capability{Expansion}},
	{csi.ControllerServiceCapability_RPC_MODIFY_VOLUME, []Capability{Modify}},
	{csi.ControllerServiceCapability_RPC_GET_VOLUME, []Capability{Get}},
	{csi.ControllerServiceCapability_RPC_GET_SNAPSHOT, []Capability{Get, Snapshots}},
	{csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH, []Capability{Health}},
	{csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH, []Capability{Health, List}},
	{csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, []Capability{SingleWriter}},
}

// nodeRPCs lists the advertisements of NodeGetCapabilities.
var nodeRPCs = []advertisement[csi.NodeServiceCapability_RPC_Type]{
	{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, []Capability{Stage}},
	{csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, []Capability{Stats}},
	{csi.NodeServiceCapability_RPC_EXPAND_VOLUME, []Capability{Expansion}},
	{csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH, []Capability{Health}},
	{csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH, []Capability{Health}},
	{csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, []Capability{SingleWriter}},
	{csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP, []Capability{MountGroup}},
}

// advertised returns the advertisements whose needs are on, as messages C of one service.
func advertised[T, C any](on Capabilities, all []advertisement[T], message func(T) C) []C {
	var messages []C
	for _, a := range all {
		if on.hasAll(a.needs) {
			messages = append(messages, message(a.kind))
		}
	}
	return messages
}
