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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/storage"
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

// plan is one request and the object for its volume.
type plan struct {
	// request has no secrets.
	request *spec.CreateVolumeRequest
	// volume is the object as far as it is known before the call.
	volume *v1.PersistentVolume
	// secret identifies the secret that the request is sent with, nil for none.
	secret *journal.Secret
	// selected is the selected node, "" for none; class is the name of the storage class.
	selected, class string
	// alternative: an earlier request for the volume, tried because the last one does not
	// fit the volume that the driver has.
	alternative bool
	// credentials are for the first call; later ones read the secret again.
	credentials provision.Credentials
}

// kept is the plan as it may be remembered: without credentials.
func (p *plan) kept() *plan {
	without := *p
	without.credentials = provision.Credentials{}
	return &without
}

// equals reports whether both plans lead to the same volume.
func (p *plan) equals(other *plan) bool {
	return other != nil && proto.Equal(p.request, other.request) && p.volume.Spec.PersistentVolumeReclaimPolicy == other.volume.Spec.PersistentVolumeReclaimPolicy
}

// orAlternative returns the plan, or one with a superseded request if it is that one's
// turn.
func (p *plan) orAlternative(r claimRecord) *plan {
	number := r.alternatives % (len(r.superseded) + 1)
	if number == 0 {
		return p
	}
	other := *p
	other.request, other.alternative = r.superseded[number-1].CreateVolumeRequest, true
	return &other
}

// provisioner returns the name of the class's provisioner.
func (p *plan) provisioner() string { return p.volume.Annotations[storage.AnnDynamicallyProvisioned] }

// answer is the volume that the driver has created.
type answer struct {
	// handle is the volume handle, shown the same for logs and events: without what it
	// repeats of a secret.
	handle, shown string
	// volume is the object for it.
	volume *v1.PersistentVolume
	// unusable says why it cannot serve the claim, "" if it can.
	unusable string
}

// secretChanged: the secret that a request was sent with is gone or another one.
type secretChanged struct {
	namespace, name, what string
}

// Error returns the sentence.
func (s *secretChanged) Error() string {
	return fmt.Sprintf("the secret %s/%s, which the volume was requested with, %s", s.namespace, s.name, s.what)
}

// prepare builds the request. The driver is not called.
func (p *Provisioner) prepare(ctx context.Context, options library.ProvisionOptions) (*plan, error) {
	input, credentials, secret, err := p.Inputs.For(ctx, options)
	if err != nil {
		return nil, err
	}
	request, err := provision.Request(input)
	if err != nil {
		return nil, err
	}
	return &plan{
		request: request, volume: provision.Skeleton(input, request, p.Honor), credentials: credentials, secret: secret,
		selected: options.PVC.Annotations[storage.AnnSelectedNode], class: options.StorageClass.Name,
	}, nil
}

// create calls the driver. Errors wrap those of gRPC. Unwanted: nobody wants the
// volume, so that it must not be created with another secret than before.
func (p *Provisioner) create(ctx context.Context, planned *plan, unwanted bool) (answer, error) {
	request, err := p.withCredentials(ctx, planned, unwanted)
	if err != nil {
		return answer{}, err
	}
	if p.migrated(planned) {
		ctx = csi.Migrated(ctx)
	}
	response, err := p.Driver.CreateVolume(ctx, request)
	if err != nil {
		return answer{}, fmt.Errorf("create volume with driver %s: %w", p.Driver.Name(), err)
	}
	volume := response.GetVolume()
	made := p.finish(answer{
		handle:   volume.GetVolumeId(),
		shown:    csi.Hide(volume.GetVolumeId(), request.GetSecrets()),
		volume:   p.complete(planned, volume),
		unusable: provision.Unusable(planned.request, volume),
	}, planned)
	made.unusable = csi.Hide(made.unusable, request.GetSecrets())
	return made, nil
}

func (p *Provisioner) migrated(planned *plan) bool { return planned.provisioner() != p.Driver.Name() }

// complete makes the object of what the driver returned. The finalizer follows the gate
// as it is now.
func (p *Provisioner) complete(planned *plan, made *spec.Volume) *v1.PersistentVolume {
	volume := provision.Complete(planned.volume, planned.request, made, p.Driver.HasTopology())
	if !p.Honor {
		volume.Finalizers = finalizer.Without(volume.Finalizers, finalizer.External)
	}
	return volume
}

// unsent is an error of this program: an earlier call stays open.
func unsent(err error) error {
	return &unsentError{err}
}

type unsentError struct{ error }

// GRPCStatus has the error treated as one that does not come from the driver.
func (e *unsentError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, e.Error())
}

// Unwrap returns the cause.
func (e *unsentError) Unwrap() error { return e.error }

// withCredentials returns the request as it is sent.
func (p *Provisioner) withCredentials(ctx context.Context, planned *plan, unwanted bool) (*spec.CreateVolumeRequest, error) {
	credentials := planned.credentials
	if !credentials.Known() && planned.secret != nil {
		values, uid, err := controller.ReadSecret(ctx, p.Inputs.Client, planned.secret.Namespace, planned.secret.Name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, unsent(&secretChanged{planned.secret.Namespace, planned.secret.Name, "does not exist"})
		case err != nil:
			return nil, unsent(fmt.Errorf("read secret %s/%s: %w", planned.secret.Namespace, planned.secret.Name, err))
		case unwanted && planned.secret.UID != "" && uid != planned.secret.UID:
			return nil, unsent(&secretChanged{planned.secret.Namespace, planned.secret.Name, "was replaced by another one"})
		}
		credentials = provision.Conceal(values)
	}
	if !credentials.Known() {
		return planned.request, nil
	}
	request, ok := proto.Clone(planned.request).(*spec.CreateVolumeRequest)
	if !ok {
		return nil, unsent(errors.New("copy the request"))
	}
	request.Secrets = credentials.Reveal()
	return request, nil
}

// finish writes the object as one of the in-tree plugin where the class is of one.
// One that cannot be written so is of no use.
func (p *Provisioner) finish(made answer, planned *plan) answer {
	if !p.migrated(planned) || made.unusable != "" {
		return made
	}
	volume, err := p.Inputs.Translator.InTree(made.volume)
	if err != nil {
		made.unusable = fmt.Sprintf("the volume %q cannot be written as one of %s: %v", made.handle, planned.provisioner(), err)
		return made
	}
	made.volume = volume
	return made
}
