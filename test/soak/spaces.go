package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// runNamespaceController deletes the pods and claims of namespaces that are being deleted, and
// then ends these namespaces, as kube-controller-manager does.
func runNamespaceController(ctx context.Context, w *world) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, attempt)
		_ = collectNamespaces(limited, w.client()) // repeated
		cancel()
		sandbox.Pause(ctx, 500*time.Millisecond)
	}
}

// collectNamespaces does one step for each namespace that is being deleted.
func collectNamespaces(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			continue
		}
		if err := collectNamespace(ctx, client, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// collectNamespace deletes what is in the namespace, or ends the namespace if it is empty.
func collectNamespace(ctx context.Context, client kubernetes.Interface, namespace *v1.Namespace) error {
	core := client.CoreV1()
	pods, err := core.Pods(namespace.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	claims, err := core.PersistentVolumeClaims(namespace.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(pods.Items)+len(claims.Items) == 0 {
		namespace.Spec.Finalizers = nil
		_, err := core.Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
		return err
	}
	if err := core.PersistentVolumeClaims(namespace.Name).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}); err != nil {
		return err
	}
	return core.Pods(namespace.Name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
		metav1.ListOptions{})
}
