package provisioning

import (
	"context"
	"errors"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
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
	// DefaultFSType serves claims whose class names no file system; it may be empty.
	DefaultFSType string
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
	input, err := p.inputOf(options)
	if err != nil {
		return nil, library.ProvisioningNoChange, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, library.ProvisioningNoChange, err
	}
	response, err := p.Driver.CreateVolume(ctx, request)
	if err != nil {
		return nil, stateOf(err), fmt.Errorf("create volume with driver %s: %w", p.Driver.Name(), err)
	}
	made := response.GetVolume()
	if reason := provision.Unusable(request, made); reason != "" {
		return p.discard(ctx, made, reason)
	}
	klog.FromContext(ctx).V(2).Info("Volume created in the storage system", "volume", input.Name, "handle", made.GetVolumeId())
	return provision.Volume(input, request, made, p.Driver.Name(), p.Honor), library.ProvisioningFinished, nil
}

func (p *Provisioner) inputOf(options library.ProvisionOptions) (provision.Input, error) {
	mode, err := accessmodes.ToCSIAccessMode(options.PVC.Spec.AccessModes, p.Driver.TellsWriters())
	if err != nil {
		return provision.Input{}, fmt.Errorf("translate access modes of the claim: %w", err)
	}
	if options.SelectedNode != nil && p.Driver.HasTopology() {
		return provision.Input{}, &provision.Refusal{Sentence: fmt.Sprintf("Driver %s has topology, and this provisioner cannot yet place a volume near node %s; use a storage class with volumeBindingMode Immediate", p.Driver.Name(), options.SelectedNode.Name)}
	}
	return provision.Input{
		Name: options.PVName, Claim: options.PVC, Class: options.StorageClass,
		AccessMode: mode, DefaultFSType: p.DefaultFSType, Topology: p.Driver.HasTopology(),
	}, nil
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

func stateOf(err error) library.ProvisioningState {
	if provision.OutcomeOf(status.Code(err)) == provision.Unknown {
		return library.ProvisioningInBackground
	}
	return library.ProvisioningFinished
}
