package csibackend

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// classOf returns the class, translated to CSI if it is of the in-tree plugin.
func (i *Inputs) classOf(ctx context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	if class.Provisioner == i.Driver.Name() {
		return class, nil
	}
	translated, err := i.Translator.Class(ctx, class)
	if err != nil {
		return nil, fmt.Errorf("translate storage class %s of the in-tree plugin: %w", class.Name, err)
	}
	return translated, nil
}

// DeletionSecret returns the class's secret for the deletion of a volume, nil for none. The
// claim may be gone: claimRef of the volume has its namespace and name.
func (i *Inputs) DeletionSecret(ctx context.Context, class *storagev1.StorageClass, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	claim := volume.Spec.ClaimRef
	if claim == nil {
		return nil, nil
	}
	translated, err := i.classOf(ctx, class)
	if err != nil {
		return nil, err
	}
	return provision.DeletionSecretOf(translated, &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}, volume.Name)
}
