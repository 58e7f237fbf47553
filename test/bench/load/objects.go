package load

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// driverName is the measured driver.
const driverName = csimock.DefaultName

// class is the storage class of the driver: Immediate binding and policy Delete.
const class = "bench"

// instanceLabel is a label that differs from claim to claim, as those of a StatefulSet do.
const instanceLabel = "app.kubernetes.io/instance"

// prepare creates the class and a namespace of the turn's own, and returns its name.
func (s *session) prepare(ctx context.Context) (string, error) {
	_, err := s.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: class},
		Provisioner:       driverName,
		ReclaimPolicy:     ptr.To(v1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create class: %w", err)
	}
	namespace, err := s.client.CoreV1().Namespaces().Create(ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "turn-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create namespace: %w", err)
	}
	return namespace.Name, nil
}

// gigabytes returns a list with one size.
func gigabytes(size int) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(int64(size)<<30, resource.BinarySI)}
}

// newClaim returns a claim of the class.
func newClaim(namespace, name string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{"app.kubernetes.io/name": "database", instanceLabel: name}},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: gigabytes(1)},
		},
	}
}

// handleOf returns the handle of the volume of a claim.
func handleOf(claim *v1.PersistentVolumeClaim) string { return "volume-of-" + string(claim.UID) }

// newVolume returns the volume that a provisioner creates for a claim.
func newVolume(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:       "pvc-" + string(claim.UID),
			Finalizers: []string{string(finalizer.External)},
			Annotations: map[string]string{
				storage.AnnDynamicallyProvisioned:                            driverName,
				"volume.kubernetes.io/provisioner-deletion-secret-name":      "",
				"volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
			},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			StorageClassName:              class,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      claim.Spec.Resources.Requests,
			VolumeMode:                    ptr.To(v1.PersistentVolumeFilesystem),
			ClaimRef: &v1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: driverName, VolumeHandle: handleOf(claim), FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1756400000000-8081-" +
					driverName},
			}},
		},
	}
}

// claimName returns the name of a claim.
func claimName(i int) string { return fmt.Sprintf("claim-%d", i) }

// createClaim creates a claim as a user does.
func (s *session) createClaim(ctx context.Context, name string) (*v1.PersistentVolumeClaim, error) {
	claim, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).
		Create(ctx, newClaim(s.namespace, name), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create claim: %w", err)
	}
	return claim, nil
}

// deleteClaim deletes a claim as a user does.
func (s *session) deleteClaim(ctx context.Context, name string) error {
	if err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete claim: %w", err)
	}
	return nil
}

// deleteVolume deletes a volume as a user does.
func (s *session) deleteVolume(ctx context.Context, name string) error {
	if err := s.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete volume: %w", err)
	}
	return nil
}
