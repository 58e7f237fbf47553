package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func (b *binder) syncVolume(ctx context.Context, volume *v1.PersistentVolume) error {
	volume, err := b.syncFinalizers(ctx, volume)
	if err != nil {
		return err
	}
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID == "" {
		_, err := b.setVolumePhase(ctx, volume, v1.VolumeAvailable)
		return err
	}
	claim, err := b.claimOf(ctx, volume)
	switch {
	case err != nil:
		return err
	case claim == nil:
		return b.release(ctx, volume)
	case claim.Spec.VolumeName == "":
		if sameMode(volume, claim) {
			b.claimLoop.Enqueue(controller.Key(claim))
		}
		return nil
	case claim.Spec.VolumeName == volume.Name:
		_, err := b.setVolumePhase(ctx, volume, v1.VolumeBound)
		return err
	case storage.IsDynamic(volume) && volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete:
		return b.release(ctx, volume) // a second volume for one claim
	}
	return b.unbind(ctx, volume)
}

// claimOf returns the claim of the volume by UID, nil if it is gone. The store may be behind:
// before a volume is first released, the cache of the informer and then the API server are
// read as well. A volume that is Released or Failed has only the store.
func (b *binder) claimOf(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	key := controller.ClaimKey(volume)
	claim, found := b.claims.get(key)
	if !found && isReleased(volume) {
		return nil, nil
	}
	if !found {
		claim = controller.Lookup[*v1.PersistentVolumeClaim](b.claimInformer, key)
	}
	if claim != nil && claim.UID == volume.Spec.ClaimRef.UID {
		return claim, nil
	}
	live, err := b.client.CoreV1().PersistentVolumeClaims(volume.Spec.ClaimRef.Namespace).Get(
		ctx, volume.Spec.ClaimRef.Name, metav1.GetOptions{},
	)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read claim %s: %w", key, err)
	case live.UID != volume.Spec.ClaimRef.UID:
		return nil, nil
	}
	return live, nil
}

func isReleased(volume *v1.PersistentVolume) bool {
	return volume.Status.Phase == v1.VolumeReleased || volume.Status.Phase == v1.VolumeFailed
}

// release sets Released, once, and schedules what the policy wants. External provisioners
// see the phase.
func (b *binder) release(ctx context.Context, volume *v1.PersistentVolume) error {
	if !isReleased(volume) {
		released, err := b.setVolumePhase(ctx, volume, v1.VolumeReleased)
		if err != nil {
			return err
		}
		volume = released
	}
	switch policy := volume.Spec.PersistentVolumeReclaimPolicy; policy {
	case v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle:
		if volume.Annotations[storage.AnnMigratedTo] == "" {
			b.schedule(strings.ToLower(string(policy))+"-"+volume.Name+string(volume.UID), operation{Volume: volume})
		}
	case v1.PersistentVolumeReclaimRetain:
	}
	return nil
}

// syncFinalizers keeps the finalizer of in-tree plugins on the volumes that a plugin
// provisioned, for policy Delete, and takes the finalizer of external provisioners from them.
func (b *binder) syncFinalizers(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if !b.honor || !isInTree(volume.Annotations[storage.AnnDynamicallyProvisioned]) {
		return volume, nil
	}
	wanted := finalizer.Without(volume.Finalizers, finalizer.External)
	switch volume.Spec.PersistentVolumeReclaimPolicy {
	case v1.PersistentVolumeReclaimDelete:
		wanted = finalizer.With(wanted, finalizer.InTree)
	case v1.PersistentVolumeReclaimRetain, v1.PersistentVolumeReclaimRecycle:
		wanted = finalizer.Without(wanted, finalizer.InTree)
	}
	if slices.Equal(wanted, volume.Finalizers) {
		return volume, nil
	}
	changed := volume.DeepCopy()
	changed.Finalizers = wanted
	return b.updateVolume(ctx, changed)
}

// isInTree reports whether the name of a provisioner is the name of an in-tree plugin.
func isInTree(provisioner string) bool { return strings.HasPrefix(provisioner, "kubernetes.io/") }
