package csimock

import (
	"cmp"
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// CreateSnapshot takes a snapshot of a volume, or finds the one it took before
// for the same name.
func (s *controllerServer) CreateSnapshot(_ context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := cmp.Or(
		checkText("name", request.GetName()),
		checkText("source_volume_id", request.GetSourceVolumeId()),
		checkMap("parameters", request.GetParameters()),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	if existing, found := s.store.snapshots.byName[request.GetName()]; found {
		if existing.Volume != request.GetSourceVolumeId() {
			return nil, status.Errorf(codes.AlreadyExists, "snapshot %q already exists and is one of volume %q", request.GetName(), existing.Volume)
		}
		return &csi.CreateSnapshotResponse{Snapshot: existing.describe()}, nil
	}
	source, err := s.volume(request.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	snapshot := &Snapshot{
		Record:  s.store.newRecord("snap", request.GetName()),
		Volume:  source.ID,
		Size:    source.Capacity,
		Created: time.Now().UTC(),
	}
	s.store.addSnapshot(snapshot)
	return &csi.CreateSnapshotResponse{Snapshot: snapshot.describe()}, nil
}

// DeleteSnapshot deletes a snapshot that stands alone; one that does not exist
// is deleted already.
func (s *controllerServer) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
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
		return nil, status.Errorf(codes.InvalidArgument, "snapshot %q can only be deleted with its group %q", snapshot.ID, snapshot.Group)
	}
	s.store.removeSnapshot(snapshot)
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot returns a snapshot, one in a group too.
func (s *controllerServer) GetSnapshot(_ context.Context, request *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if err := checkText("snapshot_id", request.GetSnapshotId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	snapshot, found := s.store.snapshots.byID[request.GetSnapshotId()]
	if !found {
		return nil, status.Errorf(codes.NotFound, "snapshot %q does not exist", request.GetSnapshotId())
	}
	return &csi.GetSnapshotResponse{Snapshot: snapshot.describe()}, nil
}

// describe returns a snapshot as CSI sees it.
func (s *Snapshot) describe() *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId:      s.ID,
		SourceVolumeId:  s.Volume,
		GroupSnapshotId: s.Group,
		SizeBytes:       s.Size,
		CreationTime:    timestamppb.New(s.Created),
		ReadyToUse:      true,
	}
}
