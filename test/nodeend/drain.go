// Package nodeend ends nodes as an administrator does with kubectl, and measures what their pods and disks got.
package nodeend

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	// evictAgain is how long kubectl waits after an eviction that a budget refused.
	evictAgain = 5 * time.Second
	// lookAgain is how often kubectl looks whether a pod is gone.
	lookAgain = time.Second
)

// Drain does what "kubectl drain NODE --force --ignore-daemonsets --delete-emptydir-data --timeout=T" does: the node is
// cordoned, and all pods but those of DaemonSets and static pods are evicted at once, again and again if a budget
// refuses. It returns when all of them are gone, or with an error after the timeout.
func Drain(ctx context.Context, client kubernetes.Interface, node string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("global timeout reached: %s", timeout))
	defer cancel()
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`),
		metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("cordon node %s: %w", node, err)
	}
	pods, err := PodsOf(ctx, client, node)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, pod := range pods {
		group.Go(func() error { return end(ctx, client, pod) })
	}
	return group.Wait()
}

// PodsOf returns the pods of a node that a drain ends.
func PodsOf(ctx context.Context, client kubernetes.Interface, node string) ([]v1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", node, err)
	}
	var pods []v1.Pod
	for _, pod := range list.Items {
		owner := metav1.GetControllerOf(&pod)
		daemon := owner != nil && owner.Kind == "DaemonSet"
		if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; !static && !daemon {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// end evicts a pod, and waits until it is gone.
func end(ctx context.Context, client kubernetes.Interface, pod v1.Pod) error {
	if err := evict(ctx, client, pod); err != nil {
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	err := wait.PollUntilContextCancel(ctx, lookAgain, true, func(ctx context.Context) (bool, error) {
		now, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID, ignoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until pod %s/%s is gone: %w", pod.Namespace, pod.Name, cause(ctx, err))
	}
	return nil
}

// evict asks for the eviction of a pod until no budget refuses.
func evict(ctx context.Context, client kubernetes.Interface, pod v1.Pod) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	for {
		err := client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		if !apierrors.IsTooManyRequests(err) {
			return cause(ctx, ignoreNotFound(err))
		}
		select {
		case <-time.After(evictAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// cause returns why ctx ended instead of an error that followed from it.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
