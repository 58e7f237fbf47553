package csimock

import (
	"cmp"
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// ControllerGetVolumeHealth returns the conditions of a volume.
func (s *controllerServer) ControllerGetVolumeHealth(_ context.Context, request *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	if err := checkText("volume_id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: volumeHealth(volume.ID, s.controllerHealth(volume))}, nil
}

// ControllerListVolumeHealth returns a page of the unhealthy volumes, oldest first.
func (s *controllerServer) ControllerListVolumeHealth(_ context.Context, request *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	s.store.Lock()
	defer s.store.Unlock()
	wanted, err := parseWindow(request.GetStartingToken(), request.GetMaxEntries(), s.store.sequence)
	if err != nil {
		return nil, err
	}
	unhealthy := slices.DeleteFunc(s.store.volumes.sorted(), func(v *Volume) bool { return len(s.controllerHealth(v)) == 0 })
	volumes, next := page(unhealthy, wanted)
	response := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, v := range volumes {
		response.Entries = append(response.Entries, volumeHealth(v.ID, s.controllerHealth(v)))
	}
	return response, nil
}

// NodeGetVolumeHealth returns the conditions of a volume that the node reports. The volume
// need not be staged or published.
func (s *nodeServer) NodeGetVolumeHealth(_ context.Context, request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkOptionalPath("volume_publish_path", request.GetVolumePublishPath()),
		checkOptionalPath("staging_target_path", request.GetStagingTargetPath()),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: volumeHealth(volume.ID, s.nodeHealth(volume))}, nil
}

// NodeGetStorageHealth returns the conditions of the storage backend.
func (s *nodeServer) NodeGetStorageHealth(context.Context, *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	s.store.Lock()
	defer s.store.Unlock()
	return &csi.NodeGetStorageHealthResponse{BackendHealth: backendHealth(s.storageHealth())}, nil
}
