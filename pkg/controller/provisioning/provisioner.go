package provisioning

import (
	"context"
	"errors"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// Driver makes volumes in the storage system.
type Driver interface {
	Name() string
	HasTopology() bool
	TellsWriters() bool
	CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error)
	DeleteVolume(ctx context.Context, handle string, secrets map[string]string) error
}

// Deletion is the volume side. The library asks it while the gate is off.
type Deletion interface {
	// Known says whether a PersistentVolume has the handle of this driver.
	Known(handle string) bool
	ShouldDelete(ctx context.Context, volume *v1.PersistentVolume) bool
	Delete(ctx context.Context, volume *v1.PersistentVolume) error
}

// Provisioner serves the library's calls.
type Provisioner struct {
	Deletion
	// Driver makes the volumes.
	Driver Driver
	// Inputs gathers what a volume is made from.
	Inputs *Inputs
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
}

var (
	_ library.Provisioner      = (*Provisioner)(nil)
	_ library.BlockProvisioner = (*Provisioner)(nil)
	_ library.DeletionGuard    = (*Provisioner)(nil)
)

// SupportsBlock leaves it to the driver to refuse a block volume.
func (p *Provisioner) SupportsBlock(context.Context) bool { return true }

// Provision makes a volume for a claim. Whether the driver may still be at it
// after an error is in the state that it returns; a refusal, for which the driver
// was not asked, changes nothing in what an earlier call has left open.
func (p *Provisioner) Provision(ctx context.Context, options library.ProvisionOptions) (*v1.PersistentVolume, library.ProvisioningState, error) {
	input, err := p.Inputs.For(ctx, options)
	if err != nil {
		return nil, library.ProvisioningNoChange, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, library.ProvisioningNoChange, err
	}
	response, err := p.Driver.CreateVolume(ctx, request)
	if err != nil {
		p.remember(options.PVC.UID, input, err)
		return nil, stateOf(err), fmt.Errorf("create volume with driver %s: %w", p.Driver.Name(), err)
	}
	p.Inputs.Forget(options.PVC.UID)
	made := response.GetVolume()
	if reason := provision.Unusable(request, made); reason != "" {
		return p.discard(ctx, made, reason)
	}
	klog.FromContext(ctx).V(2).Info("Volume created in the storage system", "volume", input.Name, "handle", made.GetVolumeId())
	return provision.Volume(input, request, made, p.Driver.Name(), p.Honor), library.ProvisioningFinished, nil
}

// discard deletes a volume that cannot be used, so that it is not leaked, unless
// the driver has returned the handle of a volume that is in use. While that fails,
// the outcome is unknown, and the library comes back.
func (p *Provisioner) discard(ctx context.Context, made *spec.Volume, reason string) (*v1.PersistentVolume, library.ProvisioningState, error) {
	unusable := errors.New(reason)
	if made.GetVolumeId() == "" || p.Known(made.GetVolumeId()) {
		return nil, library.ProvisioningFinished, unusable
	}
	if err := p.Driver.DeleteVolume(ctx, made.GetVolumeId(), nil); err != nil {
		return nil, library.ProvisioningInBackground, fmt.Errorf("delete volume that cannot be used (%w): %w", unusable, err)
	}
	return nil, library.ProvisioningFinished, unusable
}

// remember has the same volume asked for again while the driver may be at it.
func (p *Provisioner) remember(claim types.UID, input provision.Input, err error) {
	if stateOf(err) == library.ProvisioningInBackground {
		p.Inputs.Keep(claim, input)
		return
	}
	p.Inputs.Forget(claim)
}

func stateOf(err error) library.ProvisioningState {
	if provision.OutcomeOf(status.Code(err)) == provision.Unknown {
		return library.ProvisioningInBackground
	}
	return library.ProvisioningFinished
}
