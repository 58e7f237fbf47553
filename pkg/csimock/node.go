package csimock

import (
	"cmp"
	"context"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// inodes is the number of inodes of every volume's file system.
const inodes = 1 << 20

// nodeServer is the Node service.
type nodeServer struct {
	csi.UnimplementedNodeServer
	*Driver
}

// NodeGetCapabilities returns the capabilities of the Node service.
func (s *nodeServer) NodeGetCapabilities(context.Context,
	*csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{
		Capabilities: advertised(s.config.Capabilities, nodeRPCs, nodeRPC),
	}, nil
}

// nodeRPC returns an RPC as a node capability.
func nodeRPC(kind csi.NodeServiceCapability_RPC_Type) *csi.NodeServiceCapability {
	return &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
		Rpc: &csi.NodeServiceCapability_RPC{Type: kind},
	}}
}

// NodeGetInfo returns the ID, volume limit and topology of the node.
func (s *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	response := &csi.NodeGetInfoResponse{
		NodeId:            s.config.NodeID,
		MaxVolumesPerNode: s.config.MaxVolumesPerNode,
	}
	if s.config.Capabilities.Has(Topology) {
		response.AccessibleTopology = &csi.Topology{Segments: maps.Clone(s.config.Topologies[0])}
	}
	return response, nil
}

// NodeGetVolumeStats returns the usage of a volume that is staged or published at the path.
// Volumes are always empty: the driver stores no data.
func (s *nodeServer) NodeGetVolumeStats(_ context.Context,
	request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := checkVolumePath(request.GetVolumeId(), request.GetVolumePath()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, access, err := s.volumeAt(request.GetVolumeId(), request.GetVolumePath())
	if err != nil {
		return nil, err
	}
	usage := []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: volume.Capacity, Available: volume.Capacity}}
	if access.Type == Mount {
		usage = append(usage, &csi.VolumeUsage{Unit: csi.VolumeUsage_INODES, Total: inodes, Available: inodes})
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: usage}, nil
}

// NodeExpandVolume confirms that a volume staged or published at the path has the requested
// capacity, which ControllerExpandVolume has set.
func (s *nodeServer) NodeExpandVolume(_ context.Context,
	request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := cmp.Or(
		checkVolumePath(request.GetVolumeId(), request.GetVolumePath()),
		checkRange(request.GetCapacityRange()),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, _, err := s.volumeAt(request.GetVolumeId(), request.GetVolumePath())
	if err != nil {
		return nil, err
	}
	if err := s.checkUse(volume, request.GetVolumeCapability(), codes.InvalidArgument); err != nil {
		return nil, err
	}
	required, limit := request.GetCapacityRange().GetRequiredBytes(), request.GetCapacityRange().GetLimitBytes()
	if required > volume.Capacity || limit > 0 && limit < volume.Capacity {
		return nil, status.Errorf(codes.OutOfRange, "volume %q has %d bytes, which ControllerExpandVolume can change",
			volume.ID, volume.Capacity)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: volume.Capacity}, nil
}

// checkVolumePath refuses a request without volume or path. Relative paths need no check:
// no volume is staged or published at one.
func checkVolumePath(id, path string) error {
	if err := checkText("volume_id", id); err != nil {
		return err
	}
	if path == "" {
		return status.Error(codes.InvalidArgument, "volume_path is required")
	}
	return nil
}

// volumeAt returns a volume and its access at the path, NotFound if the volume is neither
// staged nor published there. The store is locked.
func (d *Driver) volumeAt(id, path string) (*Volume, Access, error) {
	volume, err := d.volume(id)
	if err != nil {
		return nil, Access{}, err
	}
	if target, found := volume.Targets[path]; found {
		return volume, target.Access, nil
	}
	if staged, found := volume.Staged[path]; found {
		return volume, staged, nil
	}
	return nil, Access{}, status.Errorf(codes.NotFound, "volume %q is not at path %q", id, path)
}
