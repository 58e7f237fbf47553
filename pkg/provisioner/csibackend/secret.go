package csibackend

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// readSecret reads the values and the UID of a secret from the API server; the values are nil if the secret does not
// exist. It runs without a logger, because clients log response bodies at a high verbosity. Errors are returned
// unwrapped.
func readSecret(ctx context.Context, client kubernetes.Interface, namespace, name string) (values map[string]string, uid types.UID, err error) {
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
