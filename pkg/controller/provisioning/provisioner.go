package provisioning

import (
	"context"
	"errors"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/csi"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// Driver makes volumes in the storage system.
type Driver interface {
	Name() string
	HasTopology() bool
	TellsWriters() bool
	Snapshots() bool
	Clones() bool
	Modifies() bool
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
	// credentials are for the first call; later ones read the secret anew.
	credentials provision.Credentials
}

// kept is the plan as it may be remembered: without credentials.
func (p *plan) kept() *plan {
	without := *p
	without.credentials = provision.Credentials{}
	return &without
}

// answer is the volume that the driver has made.
type answer struct {
	// handle is what the driver calls it, shown the same for logs and events: without
	// what it repeats of a secret.
	handle, shown string
	// volume is the object for it, without claimRef.
	volume *v1.PersistentVolume
	// useless says why it cannot serve the claim, "" if it can.
	useless string
}

// prepare builds the request. The driver is not asked.
func (p *Provisioner) prepare(ctx context.Context, options library.ProvisionOptions) (*plan, error) {
	input, credentials, err := p.Inputs.For(ctx, options)
	if err != nil {
		return nil, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, err
	}
	return &plan{
		input: input, request: request, credentials: credentials,
		provisioner: options.StorageClass.Provisioner, selected: options.PVC.Annotations[binding.SelectedNode],
	}, nil
}

// create asks the driver. Errors wrap those of gRPC.
func (p *Provisioner) create(ctx context.Context, planned *plan) (answer, error) {
	request, err := p.withCredentials(ctx, planned)
	if err != nil {
		return answer{}, status.Error(codes.Unavailable, err.Error()) // what an earlier call has left open stays so
	}
	if planned.input.Migrated() {
		ctx = csi.Migrated(ctx)
	}
	response, err := p.Driver.CreateVolume(ctx, request)
	if err != nil {
		return answer{}, fmt.Errorf("create volume with driver %s: %w", p.Driver.Name(), err)
	}
	volume := response.GetVolume()
	made := p.finish(answer{
		handle:  volume.GetVolumeId(),
		shown:   csi.Hide(volume.GetVolumeId(), request.GetSecrets()),
		volume:  provision.Volume(planned.input, planned.request, volume, p.Honor),
		useless: provision.Unusable(planned.request, volume),
	}, planned)
	made.useless = csi.Hide(made.useless, request.GetSecrets())
	return made, nil
}

// withCredentials returns the request as it is sent.
func (p *Provisioner) withCredentials(ctx context.Context, planned *plan) (*spec.CreateVolumeRequest, error) {
	credentials := planned.credentials
	if !credentials.Known() {
		var err error
		if credentials, err = p.Inputs.credentials(ctx, planned.input); err != nil {
			return nil, err
		}
	}
	if !credentials.Known() {
		return planned.request, nil
	}
	request, ok := proto.Clone(planned.request).(*spec.CreateVolumeRequest)
	if !ok {
		return nil, errors.New("copy the request")
	}
	request.Secrets = credentials.Reveal()
	return request, nil
}

// finish writes the object as one of the in-tree plugin where the class is of one.
// One that cannot be written so is of no use.
func (p *Provisioner) finish(made answer, planned *plan) answer {
	if !planned.input.Migrated() || made.useless != "" {
		return made
	}
	volume, err := p.Inputs.Translator.InTree(made.volume)
	if err != nil {
		made.useless = fmt.Sprintf("the volume %q cannot be written as one of %s: %v", made.handle, planned.provisioner, err)
		return made
	}
	made.volume = volume
	return made
}
