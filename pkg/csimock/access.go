package csimock

import (
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Values of Access.Type.
const (
	Mount = "mount"
	Block = "block"
)

// Access is a CSI volume capability without its mount flags, which may be sensitive.
type Access struct {
	// Type is Mount or Block.
	Type string `json:"type"`
	// Mode is the name of the CSI access mode, such as SINGLE_NODE_WRITER.
	Mode string `json:"mode"`
	// FSType is the requested file system; empty for the driver's default.
	FSType string `json:"fsType,omitempty"`
}

// singleNodeWriters are the access modes for one writing node. CSI requires that the first
// is accepted wherever one of the others is.
var singleNodeWriters = []string{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER.String(),
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER.String(),
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER.String(),
}

// parseAccess reads a volume capability. A missing field, or a field of a capability that
// is off, is InvalidArgument.
func parseAccess(on Capabilities, capability *csi.VolumeCapability) (Access, error) {
	access := Access{Mode: capability.GetAccessMode().GetMode().String()}
	switch {
	case capability == nil:
		return access, status.Error(codes.InvalidArgument, "volume_capability is required")
	case capability.GetMount() != nil:
		access.Type, access.FSType = Mount, capability.GetMount().GetFsType()
	case capability.GetBlock() != nil:
		access.Type = Block
	default:
		return access, status.Error(codes.InvalidArgument, "volume_capability must have the access type mount or block")
	}
	if capability.GetMount().GetVolumeMountGroup() != "" && !on.Has(MountGroup) {
		return access, status.Error(codes.InvalidArgument,
			"volume_mount_group is set, but the driver does not have VOLUME_MOUNT_GROUP")
	}
	return access, checkMode(on, capability.GetAccessMode().GetMode())
}

// checkMode refuses an access mode that the driver does not have.
func checkMode(on Capabilities, mode csi.VolumeCapability_AccessMode_Mode) error {
	_, known := csi.VolumeCapability_AccessMode_Mode_name[int32(mode)]
	switch {
	case !known || mode == csi.VolumeCapability_AccessMode_UNKNOWN:
		return status.Error(codes.InvalidArgument, "volume_capability must have a known access_mode")
	case mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		if !on.Has(SingleWriter) {
			return status.Errorf(codes.InvalidArgument,
				"access mode %v is set, but the driver does not have SINGLE_NODE_MULTI_WRITER", mode)
		}
	}
	return nil
}

// parseAccesses reads the volume capabilities of a request, at least one.
func parseAccesses(on Capabilities, capabilities []*csi.VolumeCapability) ([]Access, error) {
	if len(capabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume_capabilities is required")
	}
	accesses := make([]Access, 0, len(capabilities))
	for _, capability := range capabilities {
		access, err := parseAccess(on, capability)
		if err != nil {
			return nil, err
		}
		accesses = append(accesses, access)
	}
	return accesses, nil
}

// serves reports whether a volume with access a can be used with the wanted access.
func (a Access) serves(wanted Access) bool {
	if a.Type != wanted.Type {
		return false
	}
	return a.Mode == wanted.Mode ||
		slices.Contains(singleNodeWriters, a.Mode) && slices.Contains(singleNodeWriters, wanted.Mode)
}

// multiNode reports whether the volume may be published to several nodes.
func (a Access) multiNode() bool {
	return strings.HasPrefix(a.Mode, "MULTI_NODE_")
}

// singleWriterOfMany reports whether only one of several nodes may write.
func (a Access) singleWriterOfMany() bool {
	return a.Mode == csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER.String()
}

// multiTarget reports whether the volume may have several target paths on one node.
func (a Access) multiTarget() bool {
	return a.multiNode() || a.Mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER.String()
}
