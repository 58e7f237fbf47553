package holder

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }

func TestContainerCondition(t *testing.T) {
	running := func(ago time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(ago)}}
	}
	for name, tc := range map[string]struct {
		status corev1.ContainerStatus
		want   blocker.Workload
	}{
		"ready":                    {corev1.ContainerStatus{Ready: true, State: running(time.Hour)}, blocker.WorkloadReady},
		"ready after restarts":     {corev1.ContainerStatus{Ready: true, RestartCount: 9, State: running(time.Hour)}, blocker.WorkloadReady},
		"has started":              {corev1.ContainerStatus{State: running(time.Minute)}, blocker.WorkloadStarting},
		"is not ready for an hour": {corev1.ContainerStatus{State: running(time.Hour)}, blocker.WorkloadUnready},
		"has started again":        {corev1.ContainerStatus{RestartCount: 3, State: running(time.Second)}, blocker.WorkloadUnready},
		"is being created":         {waiting("ContainerCreating"), blocker.WorkloadStarting},
		"waits without a reason":   {waiting(""), blocker.WorkloadStarting},
		"waits after a restart":    {corev1.ContainerStatus{RestartCount: 1, State: waiting("").State}, blocker.WorkloadUnready},
		"crash loop":               {waiting("CrashLoopBackOff"), blocker.WorkloadCrashing},
		"image cannot be pulled":   {waiting("ImagePullBackOff"), blocker.WorkloadCrashing},
		"image pull fails":         {waiting("ErrImagePull"), blocker.WorkloadCrashing},
		"configuration is missing": {waiting("CreateContainerConfigError"), blocker.WorkloadCrashing},
		"ended with an error":      {restarted(ended(1)), blocker.WorkloadCrashing},
		"ended once with an error": {ended(1), blocker.WorkloadUnready},
		"ended without an error":   {ended(0), blocker.WorkloadUnready},
		"nothing is known":         {corev1.ContainerStatus{}, blocker.WorkloadUnready},
		"waits, ready by its flag": {corev1.ContainerStatus{Ready: true, State: waiting("CrashLoopBackOff").State}, blocker.WorkloadCrashing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := containerCondition(tc.status, now); got.state != tc.want {
				t.Errorf("the state is %v, want %v", got.state, tc.want)
			}
		})
	}
}

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func named(name string, status corev1.ContainerStatus) corev1.ContainerStatus {
	status.Name = name
	return status
}

func ended(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func restarted(status corev1.ContainerStatus) corev1.ContainerStatus {
	status.RestartCount = 3
	return status
}

func TestPodCondition(t *testing.T) {
	p := program{containers: []corev1.Container{{Name: "main"}}}
	ready := corev1.ContainerStatus{Name: "main", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	crash := func(name string) corev1.ContainerStatus {
		status := waiting("CrashLoopBackOff")
		status.Name = name
		return status
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want blocker.Workload
	}{
		"ready":                        {newPod(time.Hour, conditions("True", "True"), ready), blocker.WorkloadReady},
		"its driver crashes beside it": {newPod(time.Hour, conditions("False", "False"), ready, crash("driver")), blocker.WorkloadDegraded},
		"its driver starts beside it": {newPod(time.Second, conditions("False", "False"), ready,
			named("driver", waiting("ContainerCreating"))), blocker.WorkloadStarting},
		"its driver is not ready beside it": {newPod(time.Hour, conditions("False", "False"), ready,
			named("driver", corev1.ContainerStatus{})), blocker.WorkloadUnready},
		"both crash":                  {newPod(time.Hour, conditions("False", "False"), crash("main"), crash("driver")), blocker.WorkloadCrashing},
		"it crashes, its driver runs": {newPod(time.Hour, conditions("False", "False"), crash("main"), named("driver", ready)), blocker.WorkloadCrashing},
		"the node is lost":            {newPod(time.Hour, conditions("False", "True"), ready), blocker.WorkloadUnready},
		"an init container crashes": {withInit(newPod(time.Hour, conditions("False", "False"),
			waiting("PodInitializing")), crash("init")), blocker.WorkloadCrashing},
		"crash loop":                         {newPod(time.Hour, conditions("False", "False"), crash("main")), blocker.WorkloadCrashing},
		"created just now":                   {newPod(time.Second, nil), blocker.WorkloadStarting},
		"not scheduled for an hour":          {newPod(time.Hour, nil), blocker.WorkloadUnready},
		"being created for an hour":          {newPod(time.Hour, conditions("False", "False"), waiting("ContainerCreating")), blocker.WorkloadUnready},
		"being created":                      {newPod(time.Second, conditions("False", "False"), waiting("ContainerCreating")), blocker.WorkloadStarting},
		"ready and being deleted":            {deleted(newPod(time.Hour, conditions("True", "True"), ready)), blocker.WorkloadUnready},
		"ready by its container, no summary": {newPod(time.Hour, nil, ready), blocker.WorkloadReady},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.podCondition(tc.pod, now); got.state != tc.want {
				t.Errorf("the state is %v (%s), want %v", got.state, got.text, tc.want)
			}
		})
	}
}

func TestPodInGraceIsDeletedSinceItsRequest(t *testing.T) {
	pod := deleted(newPod(time.Hour, nil))
	pod.DeletionTimestamp.Time, pod.DeletionGracePeriodSeconds = now.Add(20*time.Second), ptr.To[int64](30)
	if got := (&program{}).podCondition(pod, now); !got.since.Equal(now.Add(-10 * time.Second)) {
		t.Errorf("the pod is being deleted since %v, want since the request 10 s ago", got.since)
	}
}

func TestPodCrashingInPartIsNotCalledCrashing(t *testing.T) {
	p := program{containers: []corev1.Container{{Name: "main"}, {Name: "other"}}}
	other := waiting("CrashLoopBackOff")
	other.Name = "other"
	pod := newPod(time.Hour, conditions("False", "False"), corev1.ContainerStatus{Name: "main", Ready: true}, other)
	if got := p.podCondition(pod, now); got.state != blocker.WorkloadDegraded {
		t.Errorf("the state is %v, want degraded: which container does the work is not known", got.state)
	}
}

func newPod(age time.Duration, conditions []corev1.PodCondition, statuses ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", CreationTimestamp: at(age)},
		Status:     corev1.PodStatus{Conditions: conditions, ContainerStatuses: statuses},
	}
}

func conditions(ready, containersReady corev1.ConditionStatus) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: ready},
		{Type: corev1.ContainersReady, Status: containersReady}}
}

func withInit(pod *corev1.Pod, status corev1.ContainerStatus) *corev1.Pod {
	pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
	return pod
}

func deleted(pod *corev1.Pod) *corev1.Pod {
	deletion := at(0)
	pod.DeletionTimestamp = &deletion
	return pod
}

// examples has a pod of each state that a pod can have.
func examples() map[blocker.Workload]corev1.Pod {
	crash := waiting("CrashLoopBackOff")
	return map[blocker.Workload]corev1.Pod{
		blocker.WorkloadReady:    *newPod(time.Hour, conditions("True", "True")),
		blocker.WorkloadStarting: *newPod(time.Second, nil),
		blocker.WorkloadCrashing: *newPod(time.Hour, nil, crash),
		blocker.WorkloadUnready:  *newPod(time.Hour, nil),
		blocker.WorkloadDegraded: *newPod(time.Hour, nil, named("main", corev1.ContainerStatus{Ready: true}),
			named("driver", crash)),
	}
}

func TestWorkloadStateInAllSituations(t *testing.T) {
	pods := examples()
	for first := blocker.WorkloadUnseen; first <= blocker.WorkloadReady; first++ {
		for second := blocker.WorkloadUnseen; second <= blocker.WorkloadReady; second++ {
			var replicas []corev1.Pod
			for _, state := range []blocker.Workload{first, second} {
				if pod, has := pods[state]; has {
					replicas = append(replicas, pod)
				}
			}
			for bits := range 32 {
				w := workload{wanted: int32(bits & 1), ready: int32(bits >> 1 & 1), current: bits&4 != 0,
					changed: now.Add(-time.Hour)}
				if bits&8 != 0 {
					w.changed = now
				}
				expectState(t, program{workload: w, containers: []corev1.Container{{Name: "main"}}}, replicas, bits&16 != 0)
			}
		}
	}
}

// expectState checks what the state of a workload promises.
func expectState(t *testing.T, p program, pods []corev1.Pod, seen bool) {
	t.Helper()
	states := map[blocker.Workload]int{}
	for i := range pods {
		states[p.podCondition(&pods[i], now).state]++
	}
	p.classify(pods, seen, now)
	ready := states[blocker.WorkloadReady] > 0 || len(pods) == 0 && p.ready > 0 && p.wanted > 0
	wrong := map[blocker.Workload]bool{
		blocker.WorkloadReady:   !ready,
		blocker.WorkloadUnseen:  seen || ready,
		blocker.WorkloadStopped: !seen || p.wanted > 0 || len(pods) > 0,
		blocker.WorkloadStarting: !seen || states[blocker.WorkloadStarting] == 0 &&
			(len(pods) > 0 || p.wanted == 0 || p.changed != now),
		blocker.WorkloadCrashing: !seen || len(pods) == 0 || states[blocker.WorkloadCrashing] != len(pods),
		blocker.WorkloadUnready:  !seen || ready,
		blocker.WorkloadDegraded: !seen || states[blocker.WorkloadDegraded] == 0 ||
			states[blocker.WorkloadCrashing]+states[blocker.WorkloadDegraded] != len(pods),
		blocker.WorkloadAbsent: true,
	}
	if wrong[p.state] {
		t.Errorf("%d wanted, %d ready, current %v, seen %v, pods %v: the state is %v", p.wanted, p.ready, p.current, seen,
			states, p.state)
	}
	if ready && p.state != blocker.WorkloadReady {
		t.Errorf("a ready workload is called %v", p.state)
	}
}

func isAlive(state blocker.Workload) bool {
	return state == blocker.WorkloadReady || state == blocker.WorkloadStarting
}

func TestJoinedState(t *testing.T) {
	for first := blocker.WorkloadAbsent; first <= blocker.WorkloadReady; first++ {
		for second := blocker.WorkloadUnseen; second <= blocker.WorkloadReady; second++ {
			for _, seen := range []bool{true, false} {
				var states []blocker.Workload
				if first != blocker.WorkloadAbsent { // no program
					states = []blocker.Workload{first, second}
				}
				got := joinedState(states, seen)
				alive := isAlive(got)
				if wantAlive := isAlive(first) || len(states) > 0 && isAlive(second); alive != wantAlive {
					t.Errorf("%v, seen %v: %v", states, seen, got)
				}
				if !seen && !alive && got != blocker.WorkloadUnseen {
					t.Errorf("%v, not all seen: %v", states, got)
				}
				if got == blocker.WorkloadStopped && (first != got || second != got && second != blocker.WorkloadAbsent) {
					t.Errorf("%v: stopped, though one is not", states)
				}
			}
		}
	}
}
