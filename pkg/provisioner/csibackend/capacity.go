package csibackend

import (
	"context"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// CapacityRequest returns the GetCapacity request for the claim's volume, without
// topology: capabilities and parameters are those of the CreateVolume request. Nothing is
// read. The errors are those of For.
func (i *Inputs) CapacityRequest(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, volume string) (*spec.GetCapacityRequest, error) {
	input, _, err := i.begin(ctx, library.ProvisionOptions{PVC: claim, StorageClass: class, PVName: volume})
	if err != nil {
		return nil, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, err
	}
	return &spec.GetCapacityRequest{VolumeCapabilities: request.GetVolumeCapabilities(), Parameters: request.GetParameters()}, nil
}
