package controller

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// LiveVolume reads the volume from the API server. It returns nil if the volume is gone,
// or if another volume has its name.
func LiveVolume(ctx context.Context, client kubernetes.Interface, cached *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, cached.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read volume %s: %w", cached.Name, err)
	case volume.UID != cached.UID:
		return nil, nil
	}
	return volume, nil
}

// LiveClaim reads the claim that the volume's claimRef names from the API server, nil if
// there is none. The caller compares its UID with that of the claimRef.
func LiveClaim(ctx context.Context, client kubernetes.Interface, volume *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return nil, nil
	}
	claim, err := client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read claim %s/%s of volume %s: %w", ref.Namespace, ref.Name, volume.Name, err)
	}
	return claim, nil
}
