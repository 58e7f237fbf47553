package csimock

import (
	"cmp"
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodeStageVolume records that a volume is staged at a path. The path is an existing
// directory and is not changed.
func (s *nodeServer) NodeStageVolume(_ context.Context,
	request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	wanted, err := s.checkStage(request)
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := s.stage(volume, request.GetStagingTargetPath(), wanted); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// checkStage refuses an invalid request and returns the requested access.
func (s *nodeServer) checkStage(request *csi.NodeStageVolumeRequest) (Access, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkPath("staging_target_path", request.GetStagingTargetPath()),
		checkMap("publish_context", request.GetPublishContext()),
		checkMap("volume_context", request.GetVolumeContext()),
	); err != nil {
		return Access{}, err
	}
	return parseAccess(s.config.Capabilities, request.GetVolumeCapability())
}

// stage stages the volume at the path, if it is not staged there. The store is locked.
func (d *Driver) stage(volume *Volume, path string, wanted Access) error {
	if existing, staged := volume.Staged[path]; staged {
		if existing != wanted {
			return status.Errorf(codes.AlreadyExists, "volume %q is already staged at %q in another way", volume.ID, path)
		}
		return nil
	}
	if err := checkServes(volume, wanted, codes.FailedPrecondition); err != nil {
		return err
	}
	if err := d.checkAttached(volume); err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return status.Errorf(codes.FailedPrecondition, "staging_target_path %q is not a directory", path)
	}
	d.store.stageVolume(volume, path, wanted)
	return nil
}

// checkAttached refuses a volume that the controller has not published to this node. It
// applies with the capability Publish only.
func (d *Driver) checkAttached(volume *Volume) error {
	if _, published := volume.Published[d.config.NodeID]; !published && d.config.Capabilities.Has(Publish) {
		return status.Errorf(codes.FailedPrecondition, "volume %q is not published to node %q by the controller", volume.ID,
			d.config.NodeID)
	}
	return nil
}

// NodeUnstageVolume records that a volume is no longer staged at a path. A volume that is
// not staged there is a success; a published volume is refused.
func (s *nodeServer) NodeUnstageVolume(_ context.Context,
	request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkPath("staging_target_path", request.GetStagingTargetPath()),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	path := request.GetStagingTargetPath()
	if _, staged := volume.Staged[path]; !staged {
		return &csi.NodeUnstageVolumeResponse{}, nil
	}
	if len(volume.Targets) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is still published at %d paths", volume.ID,
			len(volume.Targets))
	}
	s.store.unstageVolume(volume, path)
	return &csi.NodeUnstageVolumeResponse{}, nil
}
