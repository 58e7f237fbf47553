package csibackend

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/exeunt-io/exeunt/internal/absent"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// ClassSecret returns the deletion secret that the volume's storage class names, nil for
// none. A class that was deleted, or that now names another provisioner, names none.
func (i *Inputs) ClassSecret(ctx context.Context, classes storagelisters.StorageClassLister, serves func(provisioner string) bool, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	class, err := classes.Get(storage.VolumeClass(volume))
	switch {
	case absent.Is(err, storage.VolumeClass(volume)):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read storage class %s: %w", storage.VolumeClass(volume), err)
	case !serves(class.Provisioner):
		return nil, nil
	}
	return i.DeletionSecret(ctx, class, volume)
}
