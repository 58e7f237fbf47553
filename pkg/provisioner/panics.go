package provisioner

import (
	"context"
	"fmt"
	"runtime/debug"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
)

// callProvision calls Provision. A panic is an error that does not tell whether there is a
// volume.
func (s *storage) callProvision(ctx context.Context, options controller.ProvisionOptions) (_ *v1.PersistentVolume, _ controller.ProvisioningState, err error) {
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
		klog.FromContext(ctx).Error(nil, "The provisioner panicked", "method", method, "panic", cause, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%s panicked: %v", method, cause)
	}
}
