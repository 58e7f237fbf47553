package csimock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// groupServer is the GroupController service.
type groupServer struct {
	csi.UnimplementedGroupControllerServer
	*Driver
}

// GroupControllerGetCapabilities returns the capabilities of the GroupController service.
func (*groupServer) GroupControllerGetCapabilities(context.Context,
	*csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{
			Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}

// CreateVolumeGroupSnapshot creates snapshots of several volumes at one moment, or returns
// the existing group with the name.
func (s *groupServer) CreateVolumeGroupSnapshot(_ context.Context,
	request *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	sources, err := checkCreateGroup(request)
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	group, err := s.findGroup(request, sources)
	if err != nil {
		return nil, err
	}
	if group == nil {
		if group, err = s.createGroup(request, sources); err != nil {
			return nil, err
		}
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: s.describeGroup(group)}, nil
}

// findGroup returns the existing group with the name, nil for none, and AlreadyExists if
// the group differs from the request. The store is locked.
func (s *groupServer) findGroup(request *csi.CreateVolumeGroupSnapshotRequest, sources []string) (*Group, error) {
	group, found := s.store.groups.byName[request.GetName()]
	if !found {
		return nil, nil
	}
	if !slices.Equal(group.Volumes, sources) || !maps.Equal(group.Parameters, request.GetParameters()) {
		return nil, status.Errorf(codes.AlreadyExists,
			"group snapshot %q already exists with other source volumes or parameters", group.Name)
	}
	return group, nil
}

// checkCreateGroup refuses an invalid request and returns the IDs of the source volumes,
// sorted.
func checkCreateGroup(request *csi.CreateVolumeGroupSnapshotRequest) ([]string, error) {
	if err := cmp.Or(
		checkText("name", request.GetName()),
		checkMap("parameters", request.GetParameters()),
	); err != nil {
		return nil, err
	}
	sources := slices.Sorted(slices.Values(request.GetSourceVolumeIds()))
	if len(sources) == 0 {
		return nil, status.Error(codes.InvalidArgument, "source_volume_ids is required")
	}
	for _, id := range sources {
		if err := checkText("source_volume_ids", id); err != nil {
			return nil, err
		}
	}
	if len(slices.Compact(slices.Clone(sources))) < len(sources) {
		return nil, status.Error(codes.InvalidArgument, "source_volume_ids names a volume twice")
	}
	return sources, nil
}

// createGroup creates a snapshot of each source, or none if a source is missing. The store
// is locked.
func (s *groupServer) createGroup(request *csi.CreateVolumeGroupSnapshotRequest, sources []string) (*Group, error) {
	volumes := make([]*Volume, 0, len(sources))
	for _, id := range sources {
		volume, err := s.volume(id)
		if err != nil {
			return nil, err
		}
		volumes = append(volumes, volume)
	}
	group := &Group{
		Record:     s.store.newRecord("group", request.GetName()),
		Volumes:    sources,
		Parameters: request.GetParameters(),
		Created:    time.Now().UTC(),
	}
	for _, volume := range volumes {
		topology, err := s.snapshotTopology(volume, nil)
		if err != nil {
			return nil, err
		}
		member := &Snapshot{
			Record: s.store.newRecord("snap", ""), Volume: volume.ID, Group: group.ID, Topology: topology,
			Size: volume.Capacity, Created: group.Created,
		}
		s.store.addSnapshot(member)
		group.Snapshots = append(group.Snapshots, member.ID)
	}
	s.store.addGroup(group)
	return group, nil
}

// GetVolumeGroupSnapshot returns a group of snapshots.
func (s *groupServer) GetVolumeGroupSnapshot(_ context.Context,
	request *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if err := checkText("group_snapshot_id", request.GetGroupSnapshotId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	group, found := s.store.groups.byID[request.GetGroupSnapshotId()]
	if !found {
		return nil, status.Errorf(codes.NotFound, "group snapshot %q does not exist", request.GetGroupSnapshotId())
	}
	if err := group.checkMembers(request.GetSnapshotIds()); err != nil {
		return nil, err
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: s.describeGroup(group)}, nil
}

// DeleteVolumeGroupSnapshot deletes a group and its snapshots. A missing group is a
// success.
func (s *groupServer) DeleteVolumeGroupSnapshot(_ context.Context,
	request *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if err := checkText("group_snapshot_id", request.GetGroupSnapshotId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	group, found := s.store.groups.byID[request.GetGroupSnapshotId()]
	if !found {
		return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
	}
	if err := group.checkMembers(request.GetSnapshotIds()); err != nil {
		return nil, err
	}
	s.store.removeGroup(group)
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}

// checkMembers refuses a list other than the snapshots of the group.
func (g *Group) checkMembers(ids []string) error {
	if !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(g.Snapshots))) {
		return status.Errorf(codes.InvalidArgument, "snapshot_ids does not list the %d snapshots of group %q",
			len(g.Snapshots), g.ID)
	}
	return nil
}

// describeGroup returns the CSI message of a group. The store is locked.
func (d *Driver) describeGroup(g *Group) *csi.VolumeGroupSnapshot {
	described := &csi.VolumeGroupSnapshot{
		GroupSnapshotId: g.ID,
		CreationTime:    timestamppb.New(g.Created),
		ReadyToUse:      true,
	}
	for _, id := range g.Snapshots {
		described.Snapshots = append(described.Snapshots, d.describeSnapshot(d.store.snapshots.byID[id]))
	}
	return described
}
