package csibackend

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

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Driver creates volumes in the storage system.
type Driver interface {
	Name() string
	HasTopology() bool
	HasSingleWriter() bool
	Snapshots() bool
	Clones() bool
	Modifies() bool
	CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error)
}

// Backend creates the volumes of one CSI driver.
type Backend struct {
	Driver Driver
	// Inputs gathers the contents of the requests.
	Inputs *Inputs
	// Failed is called after each failed CreateVolume call with the class of the volume and
	// where it was to be; it may be nil.
	Failed func(class string, requested *spec.TopologyRequirement)
}

var _ backend.Backend = (*Backend)(nil)

// Name returns the name of the driver.
func (b *Backend) Name() string { return b.Driver.Name() }

// Prepare builds the CreateVolumeRequest of a claim.
func (b *Backend) Prepare(ctx context.Context,
	options library.ProvisionOptions) (backend.Request, *v1.PersistentVolume, error) {
	input, credentials, secret, err := b.Inputs.For(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	message, err := provision.Request(input)
	if err != nil {
		return nil, nil, err
	}
	return &request{message: message, secret: secret, credentials: credentials}, provision.Skeleton(input, message), nil
}

// Restore returns the CreateVolumeRequest of a journal entry.
func (b *Backend) Restore(stored journal.Request, secret *journal.Secret) (backend.Request, error) {
	if stored.CreateVolumeRequest == nil {
		return nil, fmt.Errorf("the journal entry has no CreateVolumeRequest for driver %s", b.Name())
	}
	return &request{message: stored.CreateVolumeRequest, topologyCut: stored.TopologyCut, secret: secret}, nil
}

// Create calls CreateVolume.
func (b *Backend) Create(ctx context.Context, call backend.Call) (backend.Answer, *backend.Failure) {
	planned, ok := call.Request.(*request)
	if !ok {
		return backend.Answer{}, &backend.Failure{Err: fmt.Errorf("a request of type %T is not one of a CSI driver",
			call.Request)}
	}
	message, failure := b.withCredentials(ctx, planned, call.Unwanted)
	if failure != nil {
		return backend.Answer{}, failure
	}
	provisioner := call.Volume.Annotations[storage.AnnDynamicallyProvisioned]
	if provisioner != b.Name() {
		ctx = csi.Migrated(ctx)
	}
	response, err := b.Driver.CreateVolume(ctx, message)
	if err != nil {
		if b.Failed != nil {
			b.Failed(call.Volume.Spec.StorageClassName, message.GetAccessibilityRequirements())
		}
		return backend.Answer{}, b.failure(err)
	}
	created := response.GetVolume()
	answer := b.inTree(provisioner, backend.Answer{
		Handle:   created.GetVolumeId(),
		Shown:    csi.Hide(created.GetVolumeId(), message.GetSecrets()),
		Volume:   provision.Complete(b.inCSI(call.Volume), planned.message, created, b.Driver.HasTopology()),
		Unusable: provision.Unusable(planned.message, created, b.Driver.HasTopology()),
	})
	if b.Driver.HasTopology() && !planned.topologyCut { // else it may have been requested anywhere
		answer.Elsewhere = provision.Elsewhere(planned.message, created)
	}
	answer.Unusable = csi.Hide(answer.Unusable, message.GetSecrets())
	return answer, nil
}

// failure returns the outcome of a CreateVolume call with an error.
func (b *Backend) failure(err error) *backend.Failure {
	code := status.Code(err)
	failure := &backend.Failure{
		Err:        fmt.Errorf("create volume with driver %s: %w", b.Name(), err),
		Outcome:    provision.OutcomeOf(code),
		Infeasible: code == codes.InvalidArgument,
		NodeUnfit:  code == codes.ResourceExhausted && b.Driver.HasTopology(),
	}
	var unsent *csi.NotSent
	if errors.As(err, &unsent) {
		failure.Outcome = provision.Unchanged
	}
	if failure.Outcome == provision.Uncertain || failure.Outcome == provision.Unchanged && unsent == nil {
		failure.Unresolved = fmt.Sprintf("the driver fails with the code %s, which does not say whether there is a volume",
			code)
	}
	return failure
}

// withCredentials returns the message with its secrets. The first call uses the credentials
// of Prepare, each later call reads the secret again. An unwanted request is not sent with
// another secret than before.
func (b *Backend) withCredentials(ctx context.Context, planned *request,
	unwanted bool) (*spec.CreateVolumeRequest, *backend.Failure) {
	credentials := planned.credentials
	if secret := planned.secret; !credentials.Known() && secret != nil {
		values, uid, err := readSecret(ctx, b.Inputs.Client, secret.Namespace, secret.Name)
		switch {
		case err != nil:
			return nil, &backend.Failure{Err: fmt.Errorf("read secret %s/%s: %w", secret.Namespace, secret.Name, err)}
		case values == nil:
			return nil, secretChanged(secret, "does not exist")
		case unwanted && secret.UID != "" && uid != secret.UID:
			return nil, secretChanged(secret, "was replaced by another one")
		}
		credentials = provision.Conceal(values)
	}
	if !credentials.Known() {
		return planned.message, nil
	}
	message, ok := proto.Clone(planned.message).(*spec.CreateVolumeRequest)
	if !ok {
		return nil, &backend.Failure{Err: errors.New("copy the request")}
	}
	message.Secrets = credentials.Reveal()
	return message, nil
}

// secretChanged is the failure of a call without the secret of an earlier call.
func secretChanged(secret *journal.Secret, change string) *backend.Failure {
	reason := fmt.Sprintf("the secret %s/%s, which the volume was requested with, %s", secret.Namespace, secret.Name,
		change)
	return &backend.Failure{Err: errors.New(reason), Unresolved: reason}
}

// inCSI returns the volume with a CSI source. The journal entry of a volume that was being discarded
// may have the volume of the in-tree plugin.
func (b *Backend) inCSI(volume *v1.PersistentVolume) *v1.PersistentVolume {
	if volume.Spec.CSI != nil {
		return volume
	}
	translated, err := b.Inputs.Translator.Volume(volume)
	if err != nil { // only for a forged entry
		return volume
	}
	return translated
}

// inTree translates the PersistentVolume of a class of the in-tree plugin. A volume that
// cannot be translated is unusable.
func (b *Backend) inTree(provisioner string, answer backend.Answer) backend.Answer {
	if provisioner == b.Name() || answer.Unusable != "" {
		return answer
	}
	volume, err := b.Inputs.Translator.InTree(answer.Volume)
	if err != nil {
		answer.Unusable = fmt.Sprintf("the volume %q cannot be written as one of %s: %v", answer.Handle, provisioner, err)
		return answer
	}
	answer.Volume = volume
	return answer
}

// Shorten keeps what DeleteVolume needs: the handle and the secret.
func (b *Backend) Shorten(entry journal.Entry) journal.Entry {
	entry.Superseded, entry.Request = nil,
		journal.Request{CreateVolumeRequest: &spec.CreateVolumeRequest{Name: entry.VolumeName()}}
	entry.Volume = entry.Volume.DeepCopy()
	entry.Volume.Spec.NodeAffinity, entry.Volume.Spec.MountOptions = nil, nil
	if source := entry.Volume.Spec.CSI; source != nil {
		source.VolumeAttributes = nil
	}
	return entry
}
