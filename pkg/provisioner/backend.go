package provisioner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// storage is the storage system behind a [controller.Provisioner].
type storage struct {
	name        string
	provisioner controller.Provisioner
	// idempotent: Provision returns the existing volume when it is called again.
	idempotent bool
	// sharedSources: several volumes may have the same source.
	sharedSources bool
	// provisionTimeout and deletionTimeout bound one call; 0 is unlimited.
	provisionTimeout, deletionTimeout time.Duration
}

var (
	_ backend.Backend   = (*storage)(nil)
	_ backend.Qualifier = (*storage)(nil)
)

// Name returns the name of the provisioner.
func (s *storage) Name() string { return s.name }

// Qualifies asks the Qualifier, if the provisioner is one.
func (s *storage) Qualifies(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error) {
	return s.callShouldProvision(ctx, claim)
}

// Prepare returns the request for the claim's volume. Provision is not called.
func (s *storage) Prepare(ctx context.Context,
	options controller.ProvisionOptions) (backend.Request, *v1.PersistentVolume, error) {
	if ptr.Deref(options.PVC.Spec.VolumeMode, v1.PersistentVolumeFilesystem) == v1.PersistentVolumeBlock {
		if supports, err := s.callSupportsBlock(ctx); err != nil {
			return nil, nil, err
		} else if !supports {
			return nil, nil, &provision.Refusal{Sentence: s.name + " does not support block volume provisioning"}
		}
	}
	return newRequest(options), &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: ptr.Deref(options.StorageClass.ReclaimPolicy, v1.PersistentVolumeReclaimDelete),
		},
	}, nil
}

// Restore returns the request of a journal entry. After a restart Provision is called
// again only if the provisioner is idempotent.
func (s *storage) Restore(stored journal.Request, _ *journal.Secret) (backend.Request, error) {
	r, err := restore(stored)
	if err != nil {
		return nil, err
	}
	if !s.idempotent && r.isComplete() {
		return nil, fmt.Errorf("the provisioner %s is not idempotent, so that Provision is not called again after a restart; look for a volume called %s in the storage system", s.name, r.volume)
	}
	return r, nil
}

// Create calls Provision.
func (s *storage) Create(ctx context.Context, call backend.Call) (backend.Answer, *backend.Failure) {
	planned, ok := call.Request.(*request)
	if !ok || !planned.isComplete() {
		return backend.Answer{}, &backend.Failure{Err: errors.New("the request has no claim or no storage class")}
	}
	ctx, cancel := bounded(ctx, s.provisionTimeout)
	defer cancel()
	volume, state, err := s.callProvision(ctx, planned.options())
	switch {
	case err != nil:
		return backend.Answer{}, failureOf(state, err, ctx.Err() != nil)
	case volume == nil:
		return backend.Answer{}, &backend.Failure{Err: errors.New("Provision returned neither a volume nor an error"),
			Outcome: provision.Uncertain}
	}
	return s.answer(volume, planned.volume), nil
}

// answer returns the volume under the name of the claim's volume. Fields that the API
// server sets are dropped: it refuses new objects that have them.
func (s *storage) answer(volume *v1.PersistentVolume, name string) backend.Answer {
	volume = volume.DeepCopy()
	volume.ObjectMeta = metav1.ObjectMeta{
		Name: name, Labels: volume.Labels, Annotations: volume.Annotations, Finalizers: volume.Finalizers,
		OwnerReferences: volume.OwnerReferences,
	}
	policy := &volume.Spec.PersistentVolumeReclaimPolicy
	*policy = cmp.Or(*policy, v1.PersistentVolumeReclaimRetain) // the API server's default
	handle := s.HandleOf(volume)
	return backend.Answer{Handle: handle, Shown: handle, Volume: volume, Unusable: unusable(volume)}
}

// unusable returns why the API server would refuse the volume, "" if it would not.
func unusable(volume *v1.PersistentVolume) string {
	switch {
	case volume.Spec.PersistentVolumeSource == v1.PersistentVolumeSource{}:
		return "Provision returned a volume without a source"
	case len(volume.Spec.AccessModes) == 0:
		return "Provision returned a volume without access modes"
	case volume.Spec.Capacity.Storage().IsZero():
		return "Provision returned a volume without a capacity"
	}
	return ""
}

// Shorten drops the request: Delete needs the volume only.
func (s *storage) Shorten(entry journal.Entry) journal.Entry {
	entry.Superseded, entry.Request = nil,
		journal.Request{Payload: &journal.Payload{Kind: requestKind, Volume: entry.VolumeName()}}
	return entry
}

// bounded returns a context that ends after the timeout, 0 for none.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// failureOf returns what an error of Provision says of the volume. Interrupted: the
// context of the call ended, so that the provisioner cannot know how the call ended.
func failureOf(state controller.ProvisioningState, err error, interrupted bool) *backend.Failure {
	failure := &backend.Failure{Err: err, Outcome: outcomeOf(state)}
	switch {
	case interrupted:
		failure.Outcome = provision.Unanswered
	case isIgnored(err):
		failure.Outcome, failure.Ignored = provision.NoVolume, true
	case state == controller.ProvisioningReschedule:
		failure.NodeUnfit = true
	}
	return failure
}

// outcomeOf returns what the state of an error says of the volume. A state that is not
// known says nothing.
func outcomeOf(state controller.ProvisioningState) provision.Outcome {
	switch state {
	case controller.ProvisioningFinished, controller.ProvisioningReschedule:
		return provision.NoVolume
	case controller.ProvisioningNoChange:
		return provision.Unchanged
	default:
		return provision.Unanswered
	}
}

// isIgnored reports whether the provisioner leaves the object to another provisioner.
func isIgnored(err error) bool {
	var ignored *controller.IgnoredError
	return errors.As(err, &ignored)
}

// callProvision calls Provision. A panic is an error that does not tell whether there is a
// volume.
func (s *storage) callProvision(ctx context.Context,
	options controller.ProvisionOptions) (_ *v1.PersistentVolume, _ controller.ProvisioningState, err error) {
	defer failOnPanic(ctx, "Provision", &err)
	return s.provisioner.Provision(ctx, options)
}

// callDelete calls Delete, for as long as the deletion timeout allows.
func (s *storage) callDelete(ctx context.Context, volume *v1.PersistentVolume) (err error) {
	ctx, cancel := bounded(ctx, s.deletionTimeout)
	defer cancel()
	defer failOnPanic(ctx, "Delete", &err)
	return s.provisioner.Delete(ctx, volume.DeepCopy())
}

// callShouldProvision asks the Qualifier, if the provisioner is one.
func (s *storage) callShouldProvision(ctx context.Context, claim *v1.PersistentVolumeClaim) (_ bool, err error) {
	defer failOnPanic(ctx, "ShouldProvision", &err)
	qualifier, ok := s.provisioner.(controller.Qualifier)
	return !ok || qualifier.ShouldProvision(ctx, claim.DeepCopy()), nil
}

// callSupportsBlock asks the BlockProvisioner; any other provisioner has no block volumes.
func (s *storage) callSupportsBlock(ctx context.Context) (_ bool, err error) {
	defer failOnPanic(ctx, "SupportsBlock", &err)
	block, ok := s.provisioner.(controller.BlockProvisioner)
	return ok && block.SupportsBlock(ctx), nil
}

// callShouldDelete asks the DeletionGuard, if the provisioner is one.
func (s *storage) callShouldDelete(ctx context.Context, volume *v1.PersistentVolume) (_ bool, err error) {
	defer failOnPanic(ctx, "ShouldDelete", &err)
	guard, ok := s.provisioner.(controller.DeletionGuard)
	return !ok || guard.ShouldDelete(ctx, volume.DeepCopy()), nil
}

// failOnPanic makes a panic of the provisioner an error: the other claims and volumes are
// served on, and the user of this one reads the reason.
func failOnPanic(ctx context.Context, method string, err *error) {
	if cause := recover(); cause != nil {
		klog.FromContext(ctx).Error(nil, "The provisioner panicked", "method", method, "panic", cause, "stack",
			string(debug.Stack()))
		*err = fmt.Errorf("%s panicked: %v", method, cause)
	}
}
