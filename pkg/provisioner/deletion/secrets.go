package deletion

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// credentials are what DeleteVolume is called with.
type credentials struct {
	values map[string]string
	// missing says which secret there is not any more, "" if none is missing.
	missing string
}

// credentials reads the secret that deleting the volume needs. A secret that is missing
// is an error for as long as it can be created again.
func (c *Controller) credentials(ctx context.Context, volume *v1.PersistentVolume) (credentials, error) {
	reference, err := c.secretOf(ctx, volume)
	if err != nil {
		return credentials{}, err
	}
	secret, values, err := c.readSecret(ctx, reference)
	if err != nil {
		return credentials{}, err
	}
	switch secret.Use() {
	case reclaim.CallWithSecret:
		return credentials{values: values}, nil
	case reclaim.CallWithoutSecret:
		return credentials{missing: missingSecret(secret, reference)}, nil
	default:
		return credentials{}, errors.New(awaitedSecret(secret, reference))
	}
}

// readSecret reads the secret and, if it does not exist, its namespace.
func (c *Controller) readSecret(ctx context.Context, reference *v1.SecretReference) (reclaim.Secret, map[string]string, error) {
	if reference == nil {
		return reclaim.NoSecret, nil, nil
	}
	values, _, err := controller.ReadSecret(ctx, c.Client, reference.Namespace, reference.Name)
	switch {
	case err == nil:
		return reclaim.SecretPresent, values, nil
	case !apierrors.IsNotFound(err):
		return 0, nil, fmt.Errorf("read the deletion secret %s/%s of the volume: %w", reference.Namespace, reference.Name, err)
	}
	namespace, err := c.Client.CoreV1().Namespaces().Get(ctx, reference.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return reclaim.SecretNamespaceGone, nil, nil
	case apierrors.IsForbidden(err):
		return reclaim.SecretMissingNamespaceUnknown, nil, nil
	case err != nil:
		return 0, nil, fmt.Errorf("read namespace %s of the deletion secret %s: %w", reference.Namespace, reference.Name, err)
	case namespace.DeletionTimestamp != nil:
		return reclaim.SecretNamespaceTerminating, nil, nil
	}
	return reclaim.SecretMissing, nil, nil
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
