package csimock

import (
	"context"
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// controllerServer is the Controller service.
type controllerServer struct {
	csi.UnimplementedControllerServer
	*Driver
}

// ControllerGetCapabilities returns the capabilities of the Controller service.
func (s *controllerServer) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{
		Capabilities: advertised(s.config.Capabilities, controllerRPCs, controllerRPC),
	}, nil
}

// controllerRPC returns an RPC as a controller capability.
func controllerRPC(kind csi.ControllerServiceCapability_RPC_Type) *csi.ControllerServiceCapability {
	return &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
		Rpc: &csi.ControllerServiceCapability_RPC{Type: kind},
	}}
}

// GetCapacity returns the available capacity of the pool, 0 for a topology that the driver
// does not serve.
func (s *controllerServer) GetCapacity(_ context.Context,
	request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if err := s.checkGetCapacity(request); err != nil {
		return nil, err
	}
	if wanted := request.GetAccessibleTopology(); wanted != nil &&
		findTopology(s.config.Topologies, wanted.GetSegments()) == nil {
		return &csi.GetCapacityResponse{}, nil
	}
	s.store.Lock()
	defer s.store.Unlock()
	return &csi.GetCapacityResponse{AvailableCapacity: s.available()}, nil
}

// checkGetCapacity refuses an invalid request.
func (s *controllerServer) checkGetCapacity(request *csi.GetCapacityRequest) error {
	if request.GetAccessibleTopology() != nil && !s.config.Capabilities.Has(Topology) {
		return status.Error(codes.InvalidArgument,
			"accessible_topology is set, but the driver does not have VOLUME_ACCESSIBILITY_CONSTRAINTS")
	}
	for _, capability := range request.GetVolumeCapabilities() {
		if _, err := parseAccess(s.config.Capabilities, capability); err != nil {
			return err
		}
	}
	return checkMap("parameters", request.GetParameters())
}

// available returns the available capacity of the pool in bytes, 0 if the pool is smaller
// than its volumes. The store is locked.
func (d *Driver) available() int64 {
	return max(0, d.config.Capacity-d.store.used)
}

// ValidateVolumeCapabilities confirms the capabilities of a volume, or returns the reason
// why they do not match.
func (s *controllerServer) ValidateVolumeCapabilities(_ context.Context,
	request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := checkText("volume_id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	wanted, err := parseAccesses(s.config.Capabilities, request.GetVolumeCapabilities())
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if message := mismatch(volume, wanted, request); message != "" {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: message}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      request.GetVolumeContext(),
		VolumeCapabilities: request.GetVolumeCapabilities(),
		Parameters:         request.GetParameters(),
		MutableParameters:  request.GetMutableParameters(),
	}}, nil
}

// mismatch returns how the volume differs from the request, "" if it does not.
func mismatch(volume *Volume, wanted []Access, request *csi.ValidateVolumeCapabilitiesRequest) string {
	switch {
	case slices.ContainsFunc(wanted, func(a Access) bool { return !volume.serves(a) }):
		return "the volume was not created for one of the volume capabilities"
	case len(request.GetParameters()) > 0 && !maps.Equal(request.GetParameters(), volume.Parameters):
		return "the volume was created with other parameters"
	case len(request.GetVolumeContext()) > 0 && !maps.Equal(request.GetVolumeContext(), volume.context()):
		return "the volume has another volume context"
	case !within(volume.Mutable, request.GetMutableParameters()):
		return "the volume has other mutable parameters"
	}
	return ""
}

// volume returns a volume by ID, or NotFound. The store is locked.
func (d *Driver) volume(id string) (*Volume, error) {
	volume, found := d.store.volumes.byID[id]
	if !found {
		return nil, status.Errorf(codes.NotFound, "volume %q does not exist", id)
	}
	return volume, nil
}
