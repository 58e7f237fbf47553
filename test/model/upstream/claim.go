package upstream

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func (b *binder) syncClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	_, completed := claim.Annotations[storage.AnnBindCompleted]
	switch {
	case completed:
		return b.syncBoundClaim(ctx, claim)
	case claim.Spec.VolumeName == "":
		return b.syncUnboundClaim(ctx, claim)
	}
	return b.syncNamedVolume(ctx, claim)
}

// syncUnboundClaim selects a volume for a claim without volumeName, or requests one.
func (b *binder) syncUnboundClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	delayed := b.isDelayed(claim)
	if volume := bestMatch(b.volumes.list(), claim, delayed); volume != nil {
		return b.bind(ctx, volume, claim)
	}
	switch {
	case delayed && claim.Annotations[storage.AnnSelectedNode] == "":
	case storage.ClaimClass(claim) != "":
		b.requestVolume(claim)
		return nil
	}
	_, err := b.setClaimStatus(ctx, claim, v1.ClaimPending, nil)
	return err
}

// isDelayed reports whether the class binds the claim once a pod uses it. A class that the
// cache lacks delays nothing.
func (b *binder) isDelayed(claim *v1.PersistentVolumeClaim) bool {
	class := b.classOf(claim)
	return class != nil && storage.WaitsForFirstConsumer(class)
}

func (b *binder) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	if b.classInformer == nil {
		return nil
	}
	return controller.Lookup[*storagev1.StorageClass](b.classInformer, storage.ClaimClass(claim))
}

// syncNamedVolume binds a claim to the volume that its user, or a write of bind that was
// not the last, named.
func (b *binder) syncNamedVolume(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	volume, found := b.volumes.get(claim.Spec.VolumeName)
	_, byController := claim.Annotations[storage.AnnBoundByController]
	switch {
	case found && volume.Spec.ClaimRef == nil && satisfies(volume, claim), found && refersTo(volume, claim):
		return b.bind(ctx, volume, claim)
	case found && volume.Spec.ClaimRef != nil && byController:
		return fmt.Errorf("bind claim %s: volume %s is bound to another claim", claim.Name, volume.Name)
	}
	_, err := b.setClaimStatus(ctx, claim, v1.ClaimPending, nil)
	return err
}

// syncBoundClaim repeats bind for a claim that was bound, which completes missing writes.
func (b *binder) syncBoundClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	volume, found := b.volumes.get(claim.Spec.VolumeName)
	if found && (volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == claim.UID) {
		return b.bind(ctx, volume, claim)
	}
	if claim.Status.Phase == v1.ClaimLost {
		return nil
	}
	_, err := b.setClaimStatus(ctx, claim, v1.ClaimLost, nil)
	return err
}

// requestVolume has the provisioner of the class requested in an operation of its own.
func (b *binder) requestVolume(claim *v1.PersistentVolumeClaim) {
	class := b.classOf(claim)
	if class == nil || isInTree(class.Provisioner) {
		return // an event only; plugins do not provision here
	}
	b.schedule(
		"provision-"+controller.Key(claim)+string(claim.UID), operation{Claim: claim, Provisioner: class.Provisioner},
	)
}
