package holder

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// workload is a Deployment, StatefulSet or DaemonSet, or a pod that belongs to none of them.
type workload struct {
	kind, namespace, name string
	labels                map[string]string // of the workload
	podLabels             map[string]string // of the template
	annotations           map[string]string // of the template
	selector              *metav1.LabelSelector
	spec                  corev1.PodSpec

	wanted  int32 // replicas wanted
	ready   int32 // replicas ready, by the status
	current bool  // the status describes the latest spec
	changed time.Time
	pod     *corev1.Pod // the pod without a workload
}

// String returns kind namespace/name.
func (w workload) String() string { return w.kind + " " + w.namespace + "/" + w.name }

// listWorkloads returns the workloads of all namespaces, and whether all were seen.
func listWorkloads(ctx context.Context, r *cluster.Reader) ([]workload, bool) {
	type answer struct {
		workloads []workload
		seen      bool
	}
	found := cluster.Remember(r, "workloads", func(r *cluster.Reader) answer {
		workloads, seen := readWorkloads(ctx, r)
		return answer{workloads, seen}
	})
	return found.workloads, found.seen
}

func readWorkloads(ctx context.Context, r *cluster.Reader) ([]workload, bool) {
	var all []workload
	deployments, first := cluster.List(ctx, r, cluster.Deployments, cluster.Selection{})
	for i := range deployments {
		all = append(all, ofDeployment(&deployments[i]))
	}
	sets, second := cluster.List(ctx, r, cluster.StatefulSets, cluster.Selection{})
	for i := range sets {
		all = append(all, ofStatefulSet(&sets[i]))
	}
	daemons, third := cluster.List(ctx, r, cluster.DaemonSets, cluster.Selection{})
	for i := range daemons {
		all = append(all, ofDaemonSet(&daemons[i]))
	}
	return all, first && second && third
}

func newWorkload(kind string, meta metav1.ObjectMeta, selector *metav1.LabelSelector,
	template corev1.PodTemplateSpec) workload {
	return workload{
		kind: kind, namespace: meta.Namespace, name: meta.Name, labels: meta.Labels, podLabels: template.Labels,
		annotations: template.Annotations, selector: selector, spec: template.Spec, changed: meta.CreationTimestamp.Time,
	}
}

func ofDeployment(d *appsv1.Deployment) workload {
	w := newWorkload("Deployment", d.ObjectMeta, d.Spec.Selector, d.Spec.Template)
	w.wanted, w.ready = ptr.Deref(d.Spec.Replicas, 1), d.Status.ReadyReplicas
	w.current = d.Status.ObservedGeneration >= d.Generation
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.LastUpdateTime.After(w.changed) {
			w.changed = condition.LastUpdateTime.Time
		}
	}
	return w
}

func ofStatefulSet(s *appsv1.StatefulSet) workload {
	w := newWorkload("StatefulSet", s.ObjectMeta, s.Spec.Selector, s.Spec.Template)
	w.wanted, w.ready = ptr.Deref(s.Spec.Replicas, 1), s.Status.ReadyReplicas
	w.current = s.Status.ObservedGeneration >= s.Generation
	return w
}

func ofDaemonSet(d *appsv1.DaemonSet) workload {
	w := newWorkload("DaemonSet", d.ObjectMeta, d.Spec.Selector, d.Spec.Template)
	w.wanted, w.ready = d.Status.DesiredNumberScheduled, d.Status.NumberReady
	w.current = d.Status.ObservedGeneration >= d.Generation
	if !w.current { // how many nodes it wants is not known yet
		w.wanted = max(w.wanted, 1)
	}
	return w
}

func ofPod(pod *corev1.Pod) workload {
	return workload{
		kind: "Pod", namespace: pod.Namespace, name: pod.Name, labels: pod.Labels, podLabels: pod.Labels,
		annotations: pod.Annotations, spec: pod.Spec, wanted: 1, current: true, changed: pod.CreationTimestamp.Time, pod: pod,
	}
}

// listPods returns the pods of the workload, and whether all were seen.
func listPods(ctx context.Context, r *cluster.Reader, w workload) ([]corev1.Pod, bool) {
	if w.pod != nil {
		return []corev1.Pod{*w.pod}, true
	}
	return cluster.List(ctx, r, cluster.Pods, cluster.Selection{
		Namespace: w.namespace, Labels: metav1.FormatLabelSelector(w.selector),
	})
}

// owns reports whether the selector of the workload selects the pod.
func (w workload) owns(pod *corev1.Pod) bool {
	if w.pod != nil {
		return w.pod.UID == pod.UID
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	return err == nil && w.namespace == pod.Namespace && selector.Matches(labelSet(pod.Labels))
}
