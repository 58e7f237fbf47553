package csibackend

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// credentials are what DeleteVolume is called with.
type credentials struct {
	values map[string]string
	// missing is why DeleteVolume is called without the secret, "" if no secret is missing.
	missing string
}

// credentials reads the secret that deleting the volume needs. A secret that is missing
// is an error for as long as it can be created again.
func (d *Deleter) credentials(ctx context.Context, volume *v1.PersistentVolume) (credentials, error) {
	reference, err := d.secretOf(ctx, volume)
	if err != nil {
		return credentials{}, err
	}
	secret, values, err := d.readSecret(ctx, reference)
	if err != nil {
		return credentials{}, err
	}
	switch secret.Use() {
	case external.CallWithSecret:
		return credentials{values: values}, nil
	case external.CallWithoutSecret:
		return credentials{missing: missingSecret(secret, reference)}, nil
	default:
		return credentials{}, &backend.SecretMissing{Secret: reference.Namespace + "/" + reference.Name,
			Sentence: awaitedSecret(secret, reference)}
	}
}

// readSecret reads the secret and, if it does not exist, its namespace. Only a read that names the namespace proves
// that it is gone: the answer to a write may be that of an admission webhook.
func (d *Deleter) readSecret(ctx context.Context,
	reference *v1.SecretReference) (external.Secret, map[string]string, error) {
	if reference == nil {
		return external.SecretNone, nil, nil
	}
	values, _, err := readSecret(ctx, d.Client, reference.Namespace, reference.Name)
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("read the deletion secret %s/%s of the volume: %w", reference.Namespace, reference.Name,
			err)
	case values != nil:
		return external.SecretPresent, values, nil
	}
	namespace, exists, err := answer.Get(ctx, reference.Namespace, d.Client.CoreV1().Namespaces().Get)
	switch {
	case apierrors.IsForbidden(err):
		return external.SecretMissingNamespaceUnknown, nil, nil
	case err != nil:
		return 0, nil, fmt.Errorf("read namespace %s of the deletion secret %s: %w", reference.Namespace, reference.Name, err)
	case !exists:
		return external.SecretNamespaceGone, nil, nil
	case namespace.DeletionTimestamp != nil:
		return external.SecretNamespaceTerminating, nil, nil
	}
	return external.SecretMissing, nil, nil
}

// secretOf returns the secret that the volume names, nil for none. A volume without both
// annotations is static, or from before volumes named their secret, and needs that of its class.
// An empty annotation names none, as in external-provisioner.
func (d *Deleter) secretOf(ctx context.Context, volume *v1.PersistentVolume) (*v1.SecretReference, error) {
	name, named := volume.Annotations[provision.DeletionSecretName]
	namespace, placed := volume.Annotations[provision.DeletionSecretNamespace]
	switch {
	case (!named || !placed) && d.ClassSecret != nil:
		reference, err := d.ClassSecret(ctx, volume)
		if err != nil {
			return nil, fmt.Errorf("find the deletion secret that the volume's class names: %w", err)
		}
		return reference, nil
	case name == "" || namespace == "":
		return nil, nil
	}
	return &v1.SecretReference{Name: name, Namespace: namespace}, nil
}

// awaitedSecret returns which secret the deletion waits for, and what ends the wait.
func awaitedSecret(secret external.Secret, reference *v1.SecretReference) string {
	sentence := fmt.Sprintf("the deletion secret %s/%s of the volume does not exist; the volume is deleted once the secret exists", reference.Namespace, reference.Name)
	if secret == external.SecretMissingNamespaceUnknown {
		sentence += fmt.Sprintf(", or once namespace %s is gone and the provisioner may get namespaces, which it may not now",
			reference.Namespace)
	}
	return sentence
}

// missingSecret returns why DeleteVolume is called without a secret that the volume names,
// "" if it names none.
func missingSecret(secret external.Secret, reference *v1.SecretReference) string {
	switch secret {
	case external.SecretNamespaceTerminating:
		return fmt.Sprintf("secret %s/%s does not exist and its namespace is being deleted", reference.Namespace,
			reference.Name)
	case external.SecretNamespaceGone:
		return fmt.Sprintf("secret %s/%s does not exist, nor does its namespace", reference.Namespace, reference.Name)
	default:
		return ""
	}
}

// without returns the part of an error that names the missing secret.
func (c credentials) without() string {
	if c.missing == "" {
		return ""
	}
	return ", called without secrets because " + c.missing
}

// readSecret reads the values and the UID of a secret from the API server; the values are nil if the secret does not
// exist. It runs without a logger, because clients log response bodies at a high verbosity. Errors are returned
// unwrapped.
func readSecret(ctx context.Context, client kubernetes.Interface, namespace,
	name string) (values map[string]string, uid types.UID, err error) {
	silent := klog.NewContext(ctx, logr.Discard())
	secret, exists, err := answer.Get(silent, name, client.CoreV1().Secrets(namespace).Get)
	if err != nil || !exists {
		return nil, "", err
	}
	values = make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	return values, secret.UID, nil
}
