package drain

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// trimmed returns the pod with the fields that decisions, budgets and volumes need. Most of a pod are its containers,
// and hundreds of nodes drain at once.
func trimmed(p *v1.Pod) *v1.Pod {
	kept := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels,
		CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
		DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds, Finalizers: p.Finalizers,
		OwnerReferences: p.OwnerReferences,
	}}
	for _, key := range []string{v1.MirrorPodAnnotationKey, pod.DoNotDisruptAnnotation} {
		if value, exists := p.Annotations[key]; exists {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	kept.Spec = v1.PodSpec{NodeName: p.Spec.NodeName, TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds,
		Priority: p.Spec.Priority, Tolerations: p.Spec.Tolerations, Volumes: p.Spec.Volumes}
	kept.Status = v1.PodStatus{Phase: p.Status.Phase, StartTime: p.Status.StartTime}
	for _, c := range p.Status.Conditions {
		if slices.Contains([]v1.PodConditionType{v1.PodReady, v1.DisruptionTarget}, c.Type) {
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		ended := v1.ContainerState{}
		if c.State.Terminated != nil {
			ended.Terminated = &v1.ContainerStateTerminated{ExitCode: c.State.Terminated.ExitCode}
		}
		kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, v1.ContainerStatus{Name: c.Name, State: ended})
	}
	for _, c := range p.Status.InitContainerStatuses {
		if c.State.Running != nil { // a sidecar
			kept.Status.InitContainerStatuses = append(kept.Status.InitContainerStatuses, v1.ContainerStatus{Name: c.Name,
				State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
		}
	}
	return kept
}
