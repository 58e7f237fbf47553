package driver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ControllerGetCapabilities says that volumes are created and deleted.
func (d *Driver) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{Type: &csi.ControllerServiceCapability_Rpc{
		Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME},
	}}}}, nil
}

// NodeGetCapabilities says that volumes are staged.
func (d *Driver) NodeGetCapabilities(context.Context,
	*csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{
		Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	}}}}, nil
}

// NodeGetInfo returns the name of the node.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.config.Node}, nil
}

// CreateVolume creates the directory of a volume, which is called as the request.
func (d *Driver) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	path, err := d.volume(request.GetName())
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, status.Errorf(codes.Internal, "create volume: %v", err)
	}
	if err := os.Chmod(path, 0o777); err != nil { // #nosec G302 -- pods have any user
		return nil, status.Errorf(codes.Internal, "create volume: %v", err)
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: request.GetName(), CapacityBytes: request.GetCapacityRange().GetRequiredBytes(),
	}}, nil
}

// DeleteVolume removes a volume and its data.
func (d *Driver) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	path, err := d.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, status.Errorf(codes.Internal, "list mounts: %v", err)
	}
	if mounted(mounts, filepath.Join(VolumesDir, request.GetVolumeId())) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is mounted", request.GetVolumeId())
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, status.Errorf(codes.Internal, "delete volume: %v", err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// mounted reports whether a directory that ends in suffix is mounted. The fourth field of a
// line of mountinfo is the mounted directory.
func mounted(mountinfo []byte, suffix string) bool {
	for line := range bytes.Lines(mountinfo) {
		fields := bytes.Fields(line)
		if len(fields) > 3 && strings.HasSuffix(string(fields[3]), "/"+suffix) {
			return true
		}
	}
	return false
}

// NodeStageVolume mounts a volume at the staging path.
func (d *Driver) NodeStageVolume(_ context.Context,
	request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	path, err := d.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, mountAt(path, request.GetStagingTargetPath())
}

// NodePublishVolume mounts a staged volume in a pod.
func (d *Driver) NodePublishVolume(_ context.Context,
	request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, mountAt(request.GetStagingTargetPath(), request.GetTargetPath())
}

// NodeUnpublishVolume removes the mount of a pod.
func (d *Driver) NodeUnpublishVolume(_ context.Context,
	request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	path := request.GetTargetPath()
	if err := unmount(path); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "remove target path: %v", err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeUnstageVolume removes the mount at the staging path.
func (d *Driver) NodeUnstageVolume(_ context.Context,
	request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, unmount(request.GetStagingTargetPath())
}

// volume returns the directory of a volume. The ID is one path element.
func (d *Driver) volume(id string) (string, error) {
	if id == "." || id == ".." || id != filepath.Base(id) { // Base("") is "."
		return "", status.Errorf(codes.InvalidArgument, "volume %q is no name of a directory", id)
	}
	return filepath.Join(d.config.Dir, VolumesDir, id), nil
}

// mountAt binds a directory to a path, unless something is mounted there. A directory that
// does not exist is not created: the data would be lost.
func mountAt(source, target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return status.Errorf(codes.Internal, "create mount point: %v", err)
	}
	if present, err := isMountPoint(target); present || err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return status.Errorf(codes.Internal, "mount %s: %v", source, err)
	}
	return nil
}

// isMountPoint reports whether something is mounted at path. The fifth field of a line of
// mountinfo is the mount point.
func isMountPoint(path string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, status.Errorf(codes.Internal, "list mounts: %v", err)
	}
	for line := range bytes.Lines(mounts) {
		if fields := bytes.Fields(line); len(fields) > 4 && string(fields[4]) == path {
			return true, nil
		}
	}
	return false, nil
}

// unmount removes the mount at a path, if there is one.
func unmount(path string) error {
	err := unix.Unmount(path, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.Internal, "unmount %s: %v", path, err)
	}
	return nil
}
