package csimock

import (
	"cmp"
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ControllerExpandVolume expands a volume, also in use. NodeExpandVolume expands the file
// system of a mounted volume.
func (s *controllerServer) ControllerExpandVolume(_ context.Context,
	request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if err := checkExpand(request); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := s.checkUse(volume, request.GetVolumeCapability(), codes.InvalidArgument); err != nil {
		return nil, err
	}
	if err := s.expand(volume, request.GetCapacityRange()); err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{
		CapacityBytes:         volume.Capacity,
		NodeExpansionRequired: request.GetVolumeCapability().GetBlock() == nil,
	}, nil
}

// checkExpand refuses an invalid request.
func checkExpand(request *csi.ControllerExpandVolumeRequest) error {
	if err := checkText("volume_id", request.GetVolumeId()); err != nil {
		return err
	}
	if request.GetCapacityRange() == nil {
		return status.Error(codes.InvalidArgument, "capacity_range is required")
	}
	return checkRange(request.GetCapacityRange())
}

// checkUse returns the code for an optional volume capability that the volume lacks.
func (d *Driver) checkUse(volume *Volume, capability *csi.VolumeCapability, code codes.Code) error {
	if capability == nil {
		return nil
	}
	access, err := parseAccess(d.config.Capabilities, capability)
	if err != nil {
		return err
	}
	return checkServes(volume, access, code)
}

// checkServes returns the code for an access that the volume lacks.
func checkServes(volume *Volume, access Access, code codes.Code) error {
	if !volume.serves(access) {
		return status.Errorf(code, "volume %q was not created for access type %s with access mode %s", volume.ID, access.Type,
			access.Mode)
	}
	return nil
}

// ControllerModifyVolume changes the mutable parameters in the request and keeps the
// others.
func (s *controllerServer) ControllerModifyVolume(_ context.Context,
	request *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		s.checkMutable(request.GetMutableParameters()),
	); err != nil {
		return nil, err
	}
	if len(request.GetMutableParameters()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "mutable_parameters is required")
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if !within(volume.Mutable, request.GetMutableParameters()) {
		s.store.modifyVolume(volume, request.GetMutableParameters())
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}

// ControllerGetVolume returns a volume and the nodes that it is published to.
func (s *controllerServer) ControllerGetVolume(_ context.Context,
	request *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if err := checkText("volume_id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{
		Volume: s.describe(volume),
		Status: &csi.ControllerGetVolumeResponse_VolumeStatus{
			PublishedNodeIds: volume.nodes(),
		},
	}, nil
}
