package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// The annotations of a volume that name the secret of its deletion.
const (
	deletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	deletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
)

// reconcileVolume adds or removes the finalizer of a cached volume, then deletes a volume
// whose cached phase is Released. Nothing is read live, and the claim is never read.
func (s *sidecar) reconcileVolume(ctx context.Context, name string) error {
	volume := s.volumes.get(name)
	if volume == nil {
		return nil
	}
	s.volumeLoop.EnqueueAfter(name, sidecarResync)
	if !isServed(volume) {
		return nil
	}
	volume, err := s.syncFinalizer(ctx, volume)
	if err != nil || !s.shouldDelete(volume) {
		return err
	}
	return s.deleteVolume(ctx, volume)
}

// isServed reports whether the driver of the sidecar serves the volume.
func isServed(volume *v1.PersistentVolume) bool {
	if volume.Annotations[storage.AnnMigratedTo] == process.DriverName {
		return storage.IsDynamic(volume) || volume.Spec.CSI == nil
	}
	if storage.IsDynamic(volume) {
		return volume.Annotations[storage.AnnDynamicallyProvisioned] == process.DriverName
	}
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == process.DriverName
}

// syncFinalizer adds the finalizer to Bound volumes of policy Delete only, and never to one
// that is being deleted: the API server would refuse.
func (s *sidecar) syncFinalizer(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	deletes := volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
	present := finalizer.Has(volume.Finalizers, finalizer.External)
	switch {
	case present && (!s.honor || !deletes):
		return s.removeFinalizer(ctx, volume)
	case !present && s.honor && deletes && volume.DeletionTimestamp == nil && volume.Status.Phase == v1.VolumeBound:
		return s.setFinalizers(ctx, volume, finalizer.With(volume.Finalizers, finalizer.External))
	}
	return volume, nil
}

// shouldDelete decides by the cached volume. Step 11 of KEP-2644: with the gate off, a volume
// that is being deleted counts as deleted; with the gate on, so does one without finalizer.
func (s *sidecar) shouldDelete(volume *v1.PersistentVolume) bool {
	if volume.DeletionTimestamp != nil && (!s.honor || !finalizer.Has(volume.Finalizers, finalizer.External)) {
		return false
	}
	return volume.Status.Phase == v1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
}

// deleteVolume deletes the disk, the PersistentVolume, and then its finalizer, from the
// volume as the cache has it by then. A failure anywhere repeats all of it.
func (s *sidecar) deleteVolume(ctx context.Context, volume *v1.PersistentVolume) error {
	if err := s.deleteDisk(ctx, volume); err != nil {
		return err
	}
	if err := s.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete PersistentVolume %s: %w", volume.Name, err)
	}
	if !s.honor || len(volume.Finalizers) == 0 {
		return nil
	}
	cached := s.volumes.get(volume.Name)
	if cached == nil || !finalizer.Has(cached.Finalizers, finalizer.External) {
		return nil
	}
	_, err := s.removeFinalizer(ctx, cached)
	if apierrors.IsNotFound(errors.Unwrap(err)) {
		return nil
	}
	return err
}

func (s *sidecar) deleteDisk(ctx context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.CSI == nil {
		return fmt.Errorf("volume %s has no CSI source", volume.Name)
	}
	secrets := s.secretsOf(ctx, volume)
	for _, attachment := range list[*storagev1.VolumeAttachment](s.attachmentInformer) {
		if ptr.Deref(attachment.Spec.Source.PersistentVolumeName, "") == volume.Name {
			return fmt.Errorf("volume %s is attached to node %s", volume.Name, attachment.Spec.NodeName)
		}
	}
	if err := s.driver.DeleteVolume(ctx, volume.Spec.CSI.VolumeHandle, secrets); err != nil {
		return fmt.Errorf("delete disk of volume %s: %w", volume.Name, err)
	}
	return nil
}

// secretsOf returns the secret that the volume names, none if it cannot be read: the driver
// is called without.
func (s *sidecar) secretsOf(ctx context.Context, volume *v1.PersistentVolume) map[string]string {
	name, namespace := volume.Annotations[deletionSecretName], volume.Annotations[deletionSecretNamespace]
	if name == "" || namespace == "" {
		return nil
	}
	secret, err := s.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	secrets := map[string]string{}
	for key, value := range secret.Data {
		secrets[key] = string(value)
	}
	return secrets
}

func (s *sidecar) removeFinalizer(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	return s.setFinalizers(ctx, volume, finalizer.Without(volume.Finalizers, finalizer.External))
}

// setFinalizers sends the difference of the two lists as a strategic merge patch, without
// UID and resource version: the API server applies it to any volume of the name.
func (s *sidecar) setFinalizers(
	ctx context.Context, volume *v1.PersistentVolume, finalizers []string,
) (*v1.PersistentVolume, error) {
	changed := volume.DeepCopy()
	changed.Finalizers = finalizers
	if s.updatesFinalizers {
		return s.updateFinalizers(ctx, changed)
	}
	before, errBefore := json.Marshal(volume)
	after, errAfter := json.Marshal(changed)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return nil, fmt.Errorf("encode volume %s: %w", volume.Name, err)
	}
	difference, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.PersistentVolume{})
	if err != nil {
		return nil, fmt.Errorf("compare volume %s: %w", volume.Name, err)
	}
	written, err := s.client.CoreV1().PersistentVolumes().Patch(
		ctx, volume.Name, types.StrategicMergePatchType, difference, metav1.PatchOptions{},
	)
	if err != nil {
		return nil, fmt.Errorf("patch finalizers of volume %s: %w", volume.Name, err)
	}
	return written, nil
}

// updateFinalizers replaces the whole volume, in the cache first.
func (s *sidecar) updateFinalizers(ctx context.Context, changed *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	s.volumes.replace(changed)
	written, err := s.client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update finalizers of volume %s: %w", changed.Name, err)
	}
	return written, nil
}
