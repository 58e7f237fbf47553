package csimock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodePublishVolume creates the target path of a volume: a directory, or a file for a block
// volume.
func (s *nodeServer) NodePublishVolume(_ context.Context,
	request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	wanted, err := s.checkNodePublish(request)
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := s.checkReady(volume, request.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := s.nodePublish(volume, request.GetTargetPath(), wanted); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// checkNodePublish refuses an invalid request and returns the requested publication.
func (s *nodeServer) checkNodePublish(request *csi.NodePublishVolumeRequest) (Publication, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkPath("target_path", request.GetTargetPath()),
		checkMap("publish_context", request.GetPublishContext()),
		checkMap("volume_context", request.GetVolumeContext()),
	); err != nil {
		return Publication{}, err
	}
	access, err := parseAccess(s.config.Capabilities, request.GetVolumeCapability())
	return Publication{Access: access, ReadOnly: request.GetReadonly()}, err
}

// checkReady refuses a volume that is not attached, or not staged at the path. The store is
// locked.
func (d *Driver) checkReady(volume *Volume, staging string) error {
	if err := d.checkAttached(volume); err != nil {
		return err
	}
	if !d.config.Capabilities.Has(Stage) {
		return nil
	}
	if staging == "" {
		return status.Error(codes.FailedPrecondition, "staging_target_path is required: the driver has STAGE_UNSTAGE_VOLUME")
	}
	if _, staged := volume.Staged[staging]; !staged {
		return status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q", volume.ID, staging)
	}
	return nil
}

// nodePublish publishes the volume at the path, if it is not published there. The store is
// locked.
func (d *Driver) nodePublish(volume *Volume, path string, wanted Publication) error {
	if existing, published := volume.Targets[path]; published {
		if existing != wanted {
			return status.Errorf(codes.AlreadyExists, "volume %q is already published at %q in another way", volume.ID, path)
		}
		return nil
	}
	if err := checkServes(volume, wanted.Access, codes.FailedPrecondition); err != nil {
		return err
	}
	for other, existing := range volume.Targets {
		if !existing.multiTarget() || !wanted.multiTarget() {
			return status.Errorf(codes.FailedPrecondition, "volume %q is published at %q and cannot be at %q as well", volume.ID,
				other, path)
		}
	}
	if err := createTarget(path, wanted.Type); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	d.store.publishTarget(volume, path, wanted)
	return nil
}

// createTarget creates the target path of a volume with the access type. An existing empty
// directory or file is accepted.
func createTarget(path, accessType string) error {
	var err error
	if accessType == Mount {
		err = os.Mkdir(path, 0o750)
	} else {
		err = createFile(path)
	}
	if errors.Is(err, fs.ErrExist) && isEmptyTarget(path, accessType) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create target path: %w", err)
	}
	return nil
}

// createFile creates a file that does not exist.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	return file.Close()
}

// isEmptyTarget reports whether the path is an empty directory or, for a block
// volume, an empty file.
func isEmptyTarget(path, accessType string) bool {
	if accessType == Mount {
		entries, err := os.ReadDir(path)
		return err == nil && len(entries) == 0
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// NodeUnpublishVolume removes the target path of a volume with its contents. Other paths
// are not touched.
func (s *nodeServer) NodeUnpublishVolume(_ context.Context,
	request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := cmp.Or(
		checkText("volume_id", request.GetVolumeId()),
		checkPath("target_path", request.GetTargetPath()),
	); err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	volume, err := s.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	path := request.GetTargetPath()
	if _, published := volume.Targets[path]; !published {
		return &csi.NodeUnpublishVolumeResponse{}, nil
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, status.Errorf(codes.Internal, "remove target path: %v", err)
	}
	s.store.unpublishTarget(volume, path)
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
