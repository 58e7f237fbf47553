package csibackend

import (
	"context"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// readSecret reads the values and the UID of a secret from the API server. It runs without
// a logger, because clients log response bodies at a high verbosity. Errors are returned
// unwrapped.
func readSecret(ctx context.Context, client kubernetes.Interface, namespace, name string) (values map[string]string, uid types.UID, err error) {
	silent := klog.NewContext(ctx, logr.Discard())
	secret, err := client.CoreV1().Secrets(namespace).Get(silent, name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	values = make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	return values, secret.UID, nil
}
