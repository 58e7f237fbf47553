package upstream

import (
	"context"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// bind writes the volume, its phase, the claim and the status of the claim, each only if it
// changes.
func (b *binder) bind(ctx context.Context, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) error {
	volume, err := b.setClaimRef(ctx, volume, claim)
	if err != nil {
		return err
	}
	if volume, err = b.setVolumePhase(ctx, volume, v1.VolumeBound); err != nil {
		return err
	}
	if claim, err = b.setVolumeName(ctx, claim, volume); err != nil {
		return err
	}
	_, err = b.setClaimStatus(ctx, claim, v1.ClaimBound, volume)
	return err
}

func (b *binder) setClaimRef(
	ctx context.Context, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim,
) (*v1.PersistentVolume, error) {
	if refersTo(volume, claim) && volume.Spec.ClaimRef.UID == claim.UID {
		return volume, nil
	}
	changed := volume.DeepCopy()
	if !refersTo(volume, claim) {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storage.AnnBoundByController, "yes")
	}
	changed.Spec.ClaimRef = referenceTo(claim)
	return b.updateVolume(ctx, changed)
}

func referenceTo(claim *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}

func (b *binder) setVolumeName(
	ctx context.Context, claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume,
) (*v1.PersistentVolumeClaim, error) {
	_, completed := claim.Annotations[storage.AnnBindCompleted]
	named := claim.Spec.VolumeName == volume.Name
	if completed && named {
		return claim, nil
	}
	changed := claim.DeepCopy()
	if !named {
		changed.Spec.VolumeName = volume.Name
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storage.AnnBoundByController, "yes")
	}
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, storage.AnnBindCompleted, "yes")
	return b.updateClaim(ctx, changed)
}

// unbind makes a volume available whose claim is bound to another volume. A claimRef that a
// user wrote loses its UID only.
func (b *binder) unbind(ctx context.Context, volume *v1.PersistentVolume) error {
	changed := volume.DeepCopy()
	if _, byController := volume.Annotations[storage.AnnBoundByController]; byController {
		changed.Spec.ClaimRef = nil
		delete(changed.Annotations, storage.AnnBoundByController)
	} else {
		changed.Spec.ClaimRef.UID = ""
	}
	written, err := b.updateVolume(ctx, changed)
	if err != nil {
		return err
	}
	_, err = b.setVolumePhase(ctx, written, v1.VolumeAvailable)
	return err
}

// updateVolume replaces the whole volume; the resource version guards the write.
func (b *binder) updateVolume(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	written, err := b.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update volume %s: %w", volume.Name, err)
	}
	b.volumes.update(written)
	return written, nil
}

// updateClaim replaces the whole claim; the resource version guards the write.
func (b *binder) updateClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	written, err := b.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update claim %s: %w", claim.Name, err)
	}
	b.claims.update(written)
	return written, nil
}

func (b *binder) setVolumePhase(
	ctx context.Context, volume *v1.PersistentVolume, phase v1.PersistentVolumePhase,
) (*v1.PersistentVolume, error) {
	if volume.Status.Phase == phase {
		return volume, nil
	}
	changed := volume.DeepCopy()
	changed.Status.Phase, changed.Status.Message = phase, ""
	written, err := b.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("set phase %s of volume %s: %w", phase, volume.Name, err)
	}
	b.volumes.update(written)
	return written, nil
}

// setClaimStatus writes the phase, and what the status shows of the volume, nil for none.
// The capacity of a bound claim belongs to whatever resizes the volume.
func (b *binder) setClaimStatus(
	ctx context.Context, claim *v1.PersistentVolumeClaim, phase v1.PersistentVolumeClaimPhase,
	volume *v1.PersistentVolume,
) (*v1.PersistentVolumeClaim, error) {
	changed := claim.DeepCopy()
	changed.Status.Phase = phase
	if volume == nil {
		changed.Status.AccessModes, changed.Status.Capacity = nil, nil
	} else {
		changed.Status.AccessModes = volume.Spec.AccessModes
		if claim.Status.Phase != phase {
			setCapacity(changed, volume)
		}
	}
	if reflect.DeepEqual(changed.Status, claim.Status) {
		return claim, nil
	}
	written, err := b.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(
		ctx, changed, metav1.UpdateOptions{},
	)
	if err != nil {
		return nil, fmt.Errorf("set status %s of claim %s: %w", phase, claim.Name, err)
	}
	b.claims.update(written)
	return written, nil
}

// setCapacity sets the capacity of a claim that becomes bound: that of the volume, or that of
// its file system until it is resized.
func setCapacity(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) {
	before, resizing := volume.Annotations[storage.AnnPreResizeCapacity]
	if !resizing {
		claim.Status.Capacity = volume.Spec.Capacity
		return
	}
	capacity, err := resource.ParseQuantity(before)
	if err != nil {
		capacity = *capacityOf(volume)
	}
	claim.Status.Capacity = v1.ResourceList{v1.ResourceStorage: capacity}
}
