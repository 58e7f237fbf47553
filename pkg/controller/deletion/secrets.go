package deletion

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// secrets reads the secret that deleting the volume needs. The driver is not called
// without it.
func (c *Controller) secrets(ctx context.Context, volume *v1.PersistentVolume) (map[string]string, error) {
	reference, err := c.secretOf(ctx, volume)
	if err != nil || reference == nil {
		return nil, err
	}
	values, _, err := controller.ReadSecret(ctx, c.Client, reference.Namespace, reference.Name)
	if err != nil {
		return nil, fmt.Errorf("read the deletion secret %s/%s of the volume: %w", reference.Namespace, reference.Name, err)
	}
	return values, nil
}

// secretOf returns the secret that the volume names, empty for none. A volume from
// before volumes named theirs, and a static one, need that of their class.
func (c *Controller) secretOf(ctx context.Context, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	name, named := volume.Annotations[provision.DeletionSecretName]
	namespace, placed := volume.Annotations[provision.DeletionSecretNamespace]
	switch {
	case !named && !placed && c.ClassSecret != nil:
		reference, err := c.ClassSecret(ctx, volume)
		if err != nil {
			return nil, fmt.Errorf("find the deletion secret that the volume's class names: %w", err)
		}
		return reference, nil
	case name == "" && namespace == "":
		return nil, nil
	}
	return &v1.SecretReference{Name: name, Namespace: namespace}, nil
}
