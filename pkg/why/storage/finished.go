package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// podBlockers returns a blocker for each pod that uses a claim, and one for all that have finished.
func podBlockers(ctx context.Context, e chain.Explorer, pods []*corev1.Pod, name string) []blocker.Blocker {
	var all []blocker.Blocker
	var finished []*corev1.Pod
	for _, pod := range pods {
		if hasFinished(pod) && pod.DeletionTimestamp == nil {
			finished = append(finished, pod)
		} else {
			all = append(all, podBlocker(ctx, e, pod, name))
		}
	}
	if len(finished) == 0 {
		return all
	}
	b := podBlocker(ctx, e, finished[0], name)
	if len(finished) == 1 {
		return append(all, b)
	}
	names := make([]string, len(finished))
	for i, pod := range finished {
		names[i] = pod.Name
	}
	commands, namespace := e.Commands(), finished[0].Namespace
	b.Holder = fmt.Sprintf("%d pods of namespace %s", len(finished), namespace)
	b.Evidence = []blocker.Evidence{evidence(blocker.FromField, "spec.volumes of %d pods that have finished names the claim: %s", len(finished), strings.Join(names, ", "))}
	b.Next = cluster.Steps("these pods have finished, and count until they are deleted", commands.Kubectl(namespace, append([]string{"get", "pods"}, names...)...)) + "\n" +
		cluster.LastResort("the claim goes with the last of the pods, and with policy Delete its data", commands.Kubectl(namespace, append([]string{"delete", "pods"}, names...)...))
	return append(all, b)
}

// hasFinished reports whether the pod has ended by itself.
func hasFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
