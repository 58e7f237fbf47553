package provision

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Request returns the CreateVolumeRequest without the credentials, or a
// [Refusal].
func Request(in Input) (*csi.CreateVolumeRequest, error) {
	parameters, fsType, err := parametersOf(in.Class)
	if err != nil {
		return nil, err
	}
	if len(in.AccessModes) == 0 {
		return nil, refuse("The claim has no access mode")
	}
	if fsType == "" {
		fsType = in.Settings.DefaultFSType
	}
	if in.Settings.ExtraMetadata {
		parameters[claimNameParameter] = in.Claim.Name
		parameters[claimNamespaceParameter] = in.Claim.Namespace
		parameters[volumeNameParameter] = in.Name
	}
	return &csi.CreateVolumeRequest{
		Name:                      in.Name,
		CapacityRange:             &csi.CapacityRange{RequiredBytes: sizeOf(in.Claim).Value()},
		VolumeCapabilities:        capabilities(in, fsType),
		Parameters:                parameters,
		VolumeContentSource:       in.Source,
		AccessibilityRequirements: in.Topology,
		MutableParameters:         in.Mutable,
	}, nil
}

// sizeOf returns the size that the claim requests. Bytes are whole, so a fraction is rounded up.
func sizeOf(claim *v1.PersistentVolumeClaim) *resource.Quantity {
	size := claim.Spec.Resources.Requests.Storage().DeepCopy()
	size.RoundUp(0)
	return &size
}

// capabilities returns one capability for each access mode of the claim.
func capabilities(in Input, fsType string) []*csi.VolumeCapability {
	all := make([]*csi.VolumeCapability, 0, len(in.AccessModes))
	for _, mode := range in.AccessModes {
		wanted := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
		if isBlock(in.Claim) {
			wanted.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		} else {
			wanted.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType,
				MountFlags: in.Class.MountOptions}}
		}
		all = append(all, wanted)
	}
	return all
}

func isBlock(claim *v1.PersistentVolumeClaim) bool {
	return storage.ModeOf(claim.Spec.VolumeMode) == v1.PersistentVolumeBlock
}
