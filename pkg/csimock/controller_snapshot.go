package csimock

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// CreateSnapshot creates a snapshot of a volume, or returns the existing snapshot with the
// name.
func (s *controllerServer) CreateSnapshot(_ context.Context,
	request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := cmp.Or(
		checkText("name", request.GetName()),
		checkText("source_volume_id", request.GetSourceVolumeId()),
		checkMap("parameters", request.GetParameters()),
		s.checkTopology(request.GetAccessibilityRequirements(), SnapshotTopology),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	if existing, found := s.store.snapshots.byName[request.GetName()]; found {
		if err := sameSnapshot(existing, request); err != nil {
			return nil, err
		}
		return &csi.CreateSnapshotResponse{Snapshot: s.describeSnapshot(existing)}, nil
	}
	source, err := s.volume(request.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	topology, err := s.snapshotTopology(source, request.GetAccessibilityRequirements())
	if err != nil {
		return nil, err
	}
	snapshot := &Snapshot{
		Record:   s.store.newRecord("snap", request.GetName()),
		Volume:   source.ID,
		Topology: topology,
		Size:     source.Capacity,
		Created:  time.Now().UTC(),
	}
	s.store.addSnapshot(snapshot)
	return &csi.CreateSnapshotResponse{Snapshot: s.describeSnapshot(snapshot)}, nil
}

// sameSnapshot returns AlreadyExists if the existing snapshot differs from the request.
func sameSnapshot(existing *Snapshot, request *csi.CreateSnapshotRequest) error {
	switch {
	case existing.Volume != request.GetSourceVolumeId():
		return status.Errorf(codes.AlreadyExists, "snapshot %q already exists and is one of volume %q", existing.Name,
			existing.Volume)
	case !accessibleFrom(existing.Topology, request.GetAccessibilityRequirements()):
		return status.Errorf(codes.AlreadyExists, "snapshot %q already exists with different topology", existing.Name)
	}
	return nil
}

// snapshotTopology returns the topology of a new snapshot: the required topology, or that
// of the source volume, nil for every node.
func (d *Driver) snapshotTopology(source *Volume, wanted *csi.TopologyRequirement) (map[string]string, error) {
	if !d.config.Capabilities.Has(SnapshotTopology) {
		return nil, nil
	}
	if wanted == nil {
		return maps.Clone(source.Topology), nil
	}
	return selectTopology(d.config.Topologies, wanted)
}

// DeleteSnapshot deletes a snapshot without a group. A missing snapshot is a success.
func (s *controllerServer) DeleteSnapshot(_ context.Context,
	request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if err := checkText("snapshot_id", request.GetSnapshotId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	snapshot, found := s.store.snapshots.byID[request.GetSnapshotId()]
	if !found {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if snapshot.Group != "" {
		return nil, status.Errorf(codes.InvalidArgument, "snapshot %q can only be deleted with its group %q", snapshot.ID,
			snapshot.Group)
	}
	s.store.removeSnapshot(snapshot)
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot returns a snapshot, with or without a group.
func (s *controllerServer) GetSnapshot(_ context.Context,
	request *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if err := checkText("snapshot_id", request.GetSnapshotId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	snapshot, found := s.store.snapshots.byID[request.GetSnapshotId()]
	if !found {
		return nil, status.Errorf(codes.NotFound, "snapshot %q does not exist", request.GetSnapshotId())
	}
	return &csi.GetSnapshotResponse{Snapshot: s.describeSnapshot(snapshot)}, nil
}

// describeSnapshot returns the CSI message of a snapshot.
func (d *Driver) describeSnapshot(s *Snapshot) *csi.Snapshot {
	described := &csi.Snapshot{
		SnapshotId:      s.ID,
		SourceVolumeId:  s.Volume,
		GroupSnapshotId: s.Group,
		SizeBytes:       s.Size,
		CreationTime:    timestamppb.New(s.Created),
		ReadyToUse:      true,
	}
	if len(s.Topology) > 0 && d.config.Capabilities.Has(SnapshotTopology) {
		described.AccessibleTopology = []*csi.Topology{{Segments: maps.Clone(s.Topology)}}
	}
	return described
}
