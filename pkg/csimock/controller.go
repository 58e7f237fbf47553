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

// ControllerGetCapabilities returns what the Controller service can do.
func (s *controllerServer) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{
		Capabilities: advertised(s.config.Capabilities, controllerRPCs, controllerRPC),
	}, nil
}

// controllerRPC is an RPC as a controller capability.
func controllerRPC(kind csi.ControllerServiceCapability_RPC_Type) *csi.ControllerServiceCapability {
	return &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
		Rpc: &csi.ControllerServiceCapability_RPC{Type: kind},
	}}
}

// GetCapacity returns what is left of the pool, nothing for a topology that
// the driver does not serve.
func (s *controllerServer) GetCapacity(_ context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if err := s.checkGetCapacity(request); err != nil {
		return nil, err
	}
	if wanted := request.GetAccessibleTopology(); wanted != nil && findTopology(s.config.Topologies, wanted.GetSegments()) == nil {
		return &csi.GetCapacityResponse{}, nil
	}
	s.store.Lock()
	defer s.store.Unlock()
	return &csi.GetCapacityResponse{AvailableCapacity: s.available()}, nil
}

// checkGetCapacity refuses a request that is not well formed.
func (s *controllerServer) checkGetCapacity(request *csi.GetCapacityRequest) error {
	if request.GetAccessibleTopology() != nil && !s.config.Capabilities.Has(Topology) {
		return status.Error(codes.InvalidArgument, "accessible_topology is set, but the driver does not have VOLUME_ACCESSIBILITY_CONSTRAINTS")
	}
	for _, capability := range request.GetVolumeCapabilities() {
		if _, err := parseAccess(s.config.Capabilities, capability); err != nil {
			return err
		}
	}
	return checkMap("parameters", request.GetParameters())
}

// available returns what is left of the pool in bytes; the store is locked.
// Nothing is left if the pool was made smaller than the volumes it holds.
func (d *Driver) available() int64 {
	return max(0, d.config.Capacity-d.store.used)
}

// ValidateVolumeCapabilities confirms what the volume can do, or says what
// does not fit.
func (s *controllerServer) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
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

// mismatch says in which way the volume is not what the request describes; it
// is empty if the volume is.
func mismatch(volume *Volume, wanted []Access, request *csi.ValidateVolumeCapabilitiesRequest) string {
	switch {
	case slices.ContainsFunc(wanted, func(a Access) bool { return !volume.serves(a) }):
		return "the volume was not made for one of the volume capabilities"
	case len(request.GetParameters()) > 0 && !maps.Equal(request.GetParameters(), volume.Parameters):
		return "the volume was made with other parameters"
	case !within(volume.Mutable, request.GetMutableParameters()):
		return "the volume has other mutable parameters"
	}
	return ""
}

// volume returns a volume by its ID, NotFound if there is none; the store is
// locked.
func (d *Driver) volume(id string) (*Volume, error) {
	volume, found := d.store.volumes.byID[id]
	if !found {
		return nil, status.Errorf(codes.NotFound, "volume %q does not exist", id)
	}
	return volume, nil
}
