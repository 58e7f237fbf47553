package provision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Refusal is why a claim cannot be served, as a sentence for its user. It stays
// until claim or class change.
type Refusal struct {
	Sentence string
}

// Error returns the sentence.
func (r *Refusal) Error() string { return r.Sentence }

func refuse(format string, values ...any) error {
	return &Refusal{Sentence: fmt.Sprintf(format, values...)}
}

// parameterPrefix starts the class parameters that are meant for the provisioner
// and not for the driver.
const parameterPrefix = "csi.storage.k8s.io/"

// fsTypeParameter names the file system; oldFSTypeParameter is its older form.
const (
	fsTypeParameter    = parameterPrefix + "fstype"
	oldFSTypeParameter = "fstype"
)

// Input is what a volume is made from.
type Input struct {
	// Name is the name of the volume, which makes the request idempotent.
	Name  string
	Claim *v1.PersistentVolumeClaim
	Class *storagev1.StorageClass
	// AccessMode is the claim's access modes as the driver knows them.
	AccessMode csi.VolumeCapability_AccessMode_Mode
	// DefaultFSType serves claims whose class names no file system; it may be empty.
	DefaultFSType string
	// Topology: the driver says that not every node reaches every volume.
	Topology bool
}

// Request returns what to ask the driver for, or a [Refusal].
func Request(in Input) (*csi.CreateVolumeRequest, error) {
	if err := refusal(in.Claim); err != nil {
		return nil, err
	}
	parameters, fsType, err := parametersOf(in.Class)
	if err != nil {
		return nil, err
	}
	if fsType == "" {
		fsType = in.DefaultFSType
	}
	size := in.Claim.Spec.Resources.Requests.Storage().Value()
	if size < 0 {
		return nil, refuse("The claim requests a negative capacity")
	}
	return &csi.CreateVolumeRequest{
		Name:               in.Name,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: size},
		VolumeCapabilities: []*csi.VolumeCapability{capability(in, fsType)},
		Parameters:         parameters,
	}, nil
}

// refusal names what the claim asks for and no volume of ours can have.
func refusal(claim *v1.PersistentVolumeClaim) error {
	switch {
	case claim.Spec.Selector != nil:
		return refuse("The claim has a selector, which only finds volumes that exist; remove it to have one provisioned")
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return refuse("The claim has a data source, which this provisioner does not support")
	case claim.Spec.VolumeAttributesClassName != nil && *claim.Spec.VolumeAttributesClassName != "":
		return refuse("The claim has a VolumeAttributesClass, which this provisioner does not support")
	}
	return nil
}

// parametersOf splits the parameters of a class into those for the driver and the
// file system.
func parametersOf(class *storagev1.StorageClass) (parameters map[string]string, fsType string, err error) {
	parameters = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		value := class.Parameters[key]
		switch {
		case key == fsTypeParameter || key == oldFSTypeParameter:
			if fsType != "" {
				return nil, "", refuse("The storage class %q names the file system twice", class.Name)
			}
			fsType = value
		case strings.HasPrefix(key, parameterPrefix):
			return nil, "", refuse("The storage class %q has the parameter %q, which this provisioner does not support", class.Name, key)
		default:
			parameters[key] = value
		}
	}
	return parameters, fsType, nil
}

func capability(in Input, fsType string) *csi.VolumeCapability {
	result := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: in.AccessMode}}
	if isBlock(in.Claim) {
		result.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return result
	}
	result.AccessType = &csi.VolumeCapability_Mount{
		Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: in.Class.MountOptions},
	}
	return result
}

func isBlock(claim *v1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == v1.PersistentVolumeBlock
}
