package csibackend

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// ClassSecret returns the deletion secret that the volume's storage class names, nil for
// none. A class that was deleted, or that now names another provisioner, names none.
func (i *Inputs) ClassSecret(ctx context.Context, classes storagelisters.StorageClassLister, serves func(provisioner string) bool, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	cached := func(_ context.Context, name string, _ metav1.GetOptions) (*storagev1.StorageClass, error) {
		return classes.Get(name)
	}
	class, exists, err := answer.Get(ctx, storage.VolumeClass(volume), cached)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read storage class %s: %w", storage.VolumeClass(volume), err)
	case !exists || !serves(class.Provisioner):
		return nil, nil
	}
	return i.DeletionSecret(ctx, class, volume)
}
