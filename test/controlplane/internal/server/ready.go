package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// readyPoll is the interval of readiness checks.
const readyPoll = 50 * time.Millisecond

// waitUntilReady returns once the API server is ready and has created the objects that
// clients need.
func waitUntilReady(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read admin kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make admin client: %w", err)
	}
	last := errors.New("no readiness check has run yet")
	err = wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		last = checkReady(ctx, client)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for kube-apiserver: %w: %w", err, last)
	}
	return nil
}

// checkReady returns an error while /readyz fails, or the namespace "default" or the
// bootstrap roles of RBAC are missing.
func checkReady(ctx context.Context, client kubernetes.Interface) error {
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	if _, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
		return err
	}
	_, err := client.RbacV1().ClusterRoles().Get(ctx, "cluster-admin", metav1.GetOptions{})
	return err
}
