package storage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// nextOfPod returns the next step for a pod that keeps a claim.
func nextOfPod(ctx context.Context, e chain.Explorer, pod *corev1.Pod) string {
	commands := e.Commands()
	if pod.DeletionTimestamp != nil {
		return cluster.Steps("the pod is being deleted. See what it waits for", commands.Exeunt(pod.Namespace, "why", "pod/"+pod.Name))
	}
	return cluster.Steps(sentenceOfPod(ctx, e, pod), commands.Kubectl(pod.Namespace, "get", "pod", pod.Name)) + "\n" +
		cluster.LastResort("the claim goes with the pod, and with policy Delete its data", commands.Kubectl(pod.Namespace, "delete", "pod", pod.Name))
}

// sentenceOfPod says how the use of the claim ends.
func sentenceOfPod(ctx context.Context, e chain.Explorer, pod *corev1.Pod) string {
	if hasFinished(pod) {
		return "the pod has finished, and counts until it is deleted"
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return "the claim goes once no pod uses it"
	case !createsPods(owner):
		return fmt.Sprintf("%s %s owns the pod and creates no pods: delete the pod, which goes only after its owner otherwise", owner.Kind, owner.Name)
	case isOwnerEnding(ctx, e, pod.Namespace, owner):
		return fmt.Sprintf("%s %s, which owns the pod, is deleted and creates no pod again: the pod goes next, or delete it", owner.Kind, owner.Name)
	}
	return fmt.Sprintf("stop the workload that owns the pod first, %s %s, or it creates the pod again", owner.Kind, owner.Name)
}

// podCreators are the kinds of Kubernetes that create a pod again. A node does for static pods.
var podCreators = map[string][]string{
	"": {"ReplicationController", "Node"}, "apps": {"ReplicaSet", "StatefulSet", "DaemonSet", "Deployment"}, "batch": {"Job", "CronJob"},
}

// createsPods reports whether the owner may create pods: a custom resource may.
func createsPods(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	kinds, known := podCreators[gv.Group]
	return err != nil || !known || slices.Contains(kinds, owner.Kind)
}

// isOwnerEnding reports whether the owner is gone, or is being deleted: such an owner creates no pod.
func isOwnerEnding(ctx context.Context, e chain.Explorer, namespace string, owner *metav1.OwnerReference) bool {
	ref, found := e.Reader().Find(owner.APIVersion, owner.Kind, namespace, owner.Name)
	if !found {
		return false
	}
	object, presence, _ := e.Reader().Live(ctx, ref)
	switch presence {
	case cluster.Absent:
		return true
	case cluster.Present:
		return object.GetUID() != owner.UID || object.GetDeletionTimestamp() != nil
	case cluster.Unseen:
	}
	return false
}
