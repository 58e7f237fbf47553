package csimock

import (
	"cmp"
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ControllerPublishVolume publishes a volume to a node.
func (s *controllerServer) ControllerPublishVolume(_ context.Context,
	request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	wanted, err := s.checkPublish(request)
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if _, known := s.nodes[request.GetNodeId()]; !known {
		return nil, status.Errorf(codes.NotFound, "node %q does not exist", request.GetNodeId())
	}
	if err := s.publish(volume, request.GetNodeId(), wanted); err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"node": request.GetNodeId()}}, nil
}

// checkPublish refuses an invalid request and returns the requested publication.
func (s *controllerServer) checkPublish(request *csi.ControllerPublishVolumeRequest) (Publication, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkNode(request.GetNodeId()),
		checkMap("volume_context", request.GetVolumeContext()),
	); err != nil {
		return Publication{}, err
	}
	access, err := parseAccess(s.config.Capabilities, request.GetVolumeCapability())
	return Publication{Access: access, ReadOnly: request.GetReadonly()}, err
}

// publish publishes the volume to the node, if it is not published there. The store is
// locked.
func (d *Driver) publish(volume *Volume, node string, wanted Publication) error {
	if existing, published := volume.Published[node]; published {
		if existing != wanted {
			return status.Errorf(codes.AlreadyExists, "volume %q is already published to node %q in another way", volume.ID,
				node)
		}
		return nil
	}
	if err := checkServes(volume, wanted.Access, codes.InvalidArgument); err != nil {
		return err
	}
	for other, existing := range volume.Published {
		if !existing.sharesWith(wanted) {
			return status.Errorf(codes.FailedPrecondition, "volume %q is published to node %q and cannot be at node %q as well",
				volume.ID, other, node)
		}
	}
	if limit := d.config.MaxVolumesPerNode; limit > 0 && d.store.attached[node] >= limit {
		return status.Errorf(codes.ResourceExhausted, "node %q has %d volumes, which is its limit", node, limit)
	}
	d.store.publishVolume(volume, node, wanted)
	return nil
}

// sharesWith reports whether a volume can have both publications on two nodes.
func (p Publication) sharesWith(other Publication) bool {
	if !p.multiNode() || !other.multiNode() {
		return false
	}
	limited := p.singleWriterOfMany() || other.singleWriterOfMany()
	return !limited || p.ReadOnly || other.ReadOnly
}

// ControllerUnpublishVolume unpublishes a volume from one node, without a node ID from all
// nodes. A missing or unpublished volume is a success.
func (s *controllerServer) ControllerUnpublishVolume(_ context.Context,
	request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkOptionalText("node_id", request.GetNodeId(), maxNodeIDBytes),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	if volume, found := s.store.volumes.byID[request.GetVolumeId()]; found {
		for _, node := range volume.nodes() {
			if request.GetNodeId() == "" || request.GetNodeId() == node {
				s.store.unpublishVolume(volume, node)
			}
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
