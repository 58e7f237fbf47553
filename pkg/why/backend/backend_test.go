package backend_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/backend"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) { enumtest.ExpectNames(t, backend.Unseen, backend.Ready) }

func endpoint(ready *bool) []discoveryv1.EndpointSlice {
	return []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"},
		Conditions: discoveryv1.EndpointConditions{Ready: ready}}}}}
}

func pod(status corev1.PodStatus) []corev1.Pod { return []corev1.Pod{{Status: status}} }

func waiting(reason string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}}}
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: kind, Status: status}}}
}

func TestJudge(t *testing.T) {
	leaving := pod(corev1.PodStatus{Phase: corev1.PodRunning})
	leaving[0].DeletionTimestamp = &metav1.Time{}
	restarted := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}}}
	mixed := append(pod(waiting("CrashLoopBackOff")), pod(waiting("ContainerCreating"))...)
	for name, tc := range map[string]struct {
		seen backend.Seen
		want backend.State
	}{
		"ready endpoint":                      {backend.Seen{Slices: endpoint(new(true))}, backend.Ready},
		"endpoint without condition is ready": {backend.Seen{Slices: endpoint(nil)}, backend.Ready},
		"endpoints not listed":                {backend.Seen{PodsComplete: true}, backend.Unseen},
		"pods not listed":                     {backend.Seen{SlicesComplete: true}, backend.Unseen},
		"workloads not listed":                {backend.Seen{SlicesComplete: true, PodsComplete: true, WantedIsUnknown: true}, backend.Unseen},
		"nothing there":                       {backend.Seen{SlicesComplete: true, PodsComplete: true}, backend.Stopped},
		"endpoint not ready, no pod":          {backend.Seen{Slices: endpoint(new(false)), SlicesComplete: true, PodsComplete: true}, backend.Stopped},
		"endpoint outside of the cluster": {backend.Seen{Slices: endpoint(new(false)), SlicesComplete: true,
			PodsComplete: true, NoSelector: true}, backend.Unready},
		"no selector and no endpoint": {backend.Seen{SlicesComplete: true, PodsComplete: true, NoSelector: true}, backend.Stopped},
		"replicas wanted, no pod yet": {backend.Seen{SlicesComplete: true, PodsComplete: true, Wanted: true}, backend.Unready},
		"pod pending": {backend.Seen{SlicesComplete: true, PodsComplete: true,
			Pods: pod(corev1.PodStatus{Phase: corev1.PodPending})}, backend.Starting},
		"container is created": {backend.Seen{SlicesComplete: true, PodsComplete: true, Pods: pod(waiting("ContainerCreating"))}, backend.Starting},
		"pod ready, endpoints follow": {backend.Seen{SlicesComplete: true, PodsComplete: true,
			Pods: pod(condition(corev1.PodReady, corev1.ConditionTrue))}, backend.Starting},
		"pod has no node": {backend.Seen{SlicesComplete: true, PodsComplete: true,
			Pods: pod(condition(corev1.PodScheduled, corev1.ConditionFalse))}, backend.Unready},
		"crash loop":                           {backend.Seen{SlicesComplete: true, PodsComplete: true, Pods: pod(waiting("CrashLoopBackOff"))}, backend.Crashing},
		"crash loop and a second pod starting": {backend.Seen{SlicesComplete: true, PodsComplete: true, Pods: mixed}, backend.Starting},
		"restarted":                            {backend.Seen{SlicesComplete: true, PodsComplete: true, Pods: pod(restarted)}, backend.Unready},
		"pod is going":                         {backend.Seen{SlicesComplete: true, PodsComplete: true, Pods: leaving}, backend.Stopped},
		"pod has failed": {backend.Seen{SlicesComplete: true, PodsComplete: true,
			Pods: pod(corev1.PodStatus{Phase: corev1.PodFailed})}, backend.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			if got := backend.Judge(tc.seen); got != tc.want {
				t.Errorf("Judge() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnseenServiceIsNeverStuck(t *testing.T) {
	pods := [][]corev1.Pod{nil, pod(waiting("CrashLoopBackOff")), pod(waiting("ContainerCreating")),
		pod(condition(corev1.PodScheduled, corev1.ConditionFalse))}
	for _, list := range pods {
		for bits := range 16 {
			seen := backend.Seen{Pods: list, SlicesComplete: bits&1 != 0, PodsComplete: bits&2 != 0, Wanted: bits&4 != 0,
				WantedIsUnknown: bits&8 != 0}
			complete := seen.SlicesComplete && seen.PodsComplete && (len(list) > 0 || !seen.WantedIsUnknown)
			if backend.Judge(seen).Verdict() == blocker.Stuck && !complete {
				t.Errorf("%+v is called stuck", seen)
			}
		}
	}
	for state := backend.Unseen; state <= backend.Ready; state++ {
		if state.Verdict() == blocker.Stuck && !state.IsDown() {
			t.Errorf("%v is stuck and not down", state)
		}
	}
}
