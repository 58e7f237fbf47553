package provisioning

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// Driver makes volumes in the storage system.
type Driver interface {
	Name() string
	HasTopology() bool
	TellsWriters() bool
	CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error)
}

// Provisioner asks the driver for volumes.
type Provisioner struct {
	Driver Driver
	// Inputs gathers what a volume is made from.
	Inputs *Inputs
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
}

// plan is what the driver is asked for.
type plan struct {
	input   provision.Input
	request *spec.CreateVolumeRequest
	// provisioner is the class's, selected the node that was chosen, "" for none.
	provisioner, selected string
}

// answer is the volume that the driver has made.
type answer struct {
	// volume is the object for it, without claimRef.
	volume *v1.PersistentVolume
	// useless says why it cannot serve the claim, "" if it can.
	useless string
}

// prepare builds the request. The driver is not asked.
func (p *Provisioner) prepare(ctx context.Context, options library.ProvisionOptions) (*plan, error) {
	input, err := p.Inputs.For(ctx, options)
	if err != nil {
		return nil, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, err
	}
	return &plan{input: input, request: request, provisioner: options.StorageClass.Provisioner, selected: options.PVC.Annotations[binding.SelectedNode]}, nil
}

// create asks the driver. Errors wrap those of gRPC.
func (p *Provisioner) create(ctx context.Context, planned *plan) (answer, error) {
	response, err := p.Driver.CreateVolume(ctx, planned.request)
	if err != nil {
		return answer{}, fmt.Errorf("create volume with driver %s: %w", p.Driver.Name(), err)
	}
	made := response.GetVolume()
	return answer{
		volume:  provision.Volume(planned.input, planned.request, made, p.Driver.Name(), p.Honor),
		useless: provision.Unusable(planned.request, made),
	}, nil
}
