package holder

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// startTime is how long a container or a workload counts as starting.
const startTime = 10 * time.Minute

// program is a workload that runs the controller, and what its pods say.
type program struct {
	workload
	containers []corev1.Container // that run the controller
	state      blocker.Workload
	text       string    // why the state is so
	since      time.Time // since when, or zero
	example    string    // a pod that shows the state, or ""
	failing    string    // its container that reports an error, or ""
	serves     bool      // something ties the program to the driver
}

// classify sets the state of the program by its pods. seen: all pods of the workload were
// listed.
func (p *program) classify(pods []corev1.Pod, seen bool, now time.Time) {
	pods = slices.DeleteFunc(slices.Clone(pods), hasEnded)
	p.state, p.text = p.stateOf(pods, seen, now), p.replicas()
	if p.state == blocker.WorkloadStarting && len(pods) == 0 {
		p.text += "; changed at " + blocker.Time(p.changed) + ", it has no pods yet"
	}
	for i := range pods {
		condition := p.podCondition(&pods[i], now)
		if condition.state != p.state || p.example != "" {
			continue
		}
		p.example, p.since, p.failing = pods[i].Name, condition.since, condition.failing
		if condition.text != "" {
			p.text += fmt.Sprintf("; pod %s: %s", pods[i].Name, condition.text)
		}
	}
}

// restarts says how often a container was restarted.
func restarts(count int32) string {
	if count == 0 {
		return "and was never restarted"
	}
	return "and was restarted " + terminal.Times(count)
}

// replicas returns the replicas wanted and ready in words.
func (p *program) replicas() string {
	if p.pod != nil {
		return fmt.Sprintf("%s: phase %s", p.workload, p.pod.Status.Phase)
	}
	return fmt.Sprintf("%s: %s wanted, %d ready by its status", p.workload, terminal.Count(int(p.wanted), "replica"),
		p.ready)
}

func (p *program) stateOf(pods []corev1.Pod, seen bool, now time.Time) blocker.Workload {
	if len(pods) == 0 {
		return p.stateWithoutPods(seen, now)
	}
	states := map[blocker.Workload]int{}
	for i := range pods {
		states[p.podCondition(&pods[i], now).state]++
	}
	switch {
	case states[blocker.WorkloadReady] > 0:
		return blocker.WorkloadReady
	case !seen:
		return blocker.WorkloadUnseen
	case states[blocker.WorkloadStarting] > 0:
		return blocker.WorkloadStarting
	case states[blocker.WorkloadCrashing] == len(pods):
		return blocker.WorkloadCrashing
	case states[blocker.WorkloadCrashing]+states[blocker.WorkloadDegraded] == len(pods):
		return blocker.WorkloadDegraded
	}
	return blocker.WorkloadUnready
}

// stateWithoutPods returns the state of a workload whose pods were not seen, or that has
// none.
func (p *program) stateWithoutPods(seen bool, now time.Time) blocker.Workload {
	switch {
	case p.wanted > 0 && p.ready > 0:
		return blocker.WorkloadReady
	case !seen:
		return blocker.WorkloadUnseen
	case p.wanted == 0 && p.current && p.ready > 0: // the status contradicts the list
		return blocker.WorkloadUnready
	case p.wanted == 0:
		return blocker.WorkloadStopped
	case now.Sub(p.changed) < startTime:
		return blocker.WorkloadStarting
	}
	return blocker.WorkloadUnready
}

// condition is the state of one pod or container.
type condition struct {
	state   blocker.Workload
	text    string
	since   time.Time
	failing string // the container that reports an error, or ""
}

// podCondition returns the state of the pod by all its containers: ready, starting, crashing,
// degraded or unready.
func (p *program) podCondition(pod *corev1.Pod, now time.Time) condition {
	if deletion := deadline.Of(pod); deletion.Kind() != deadline.NotDeleted {
		return condition{state: blocker.WorkloadUnready, text: "is being deleted", since: deletion.Requested()}
	}
	ready, all := podHas(pod, corev1.PodReady), podHas(pod, corev1.ContainersReady)
	if ready == corev1.ConditionTrue {
		return condition{state: blocker.WorkloadReady}
	}
	if ready == corev1.ConditionFalse && all == corev1.ConditionTrue { // the node is lost, or a readiness gate is closed
		return condition{state: blocker.WorkloadUnready, text: "not ready, its containers are"}
	}
	own, others := p.containerConditions(pod, now)
	found := besideOthers(worstCondition(own), others)
	if found.state == blocker.WorkloadStarting && now.Sub(pod.CreationTimestamp.Time) >= startTime &&
		found.since.IsZero() {
		found.state = blocker.WorkloadUnready
	}
	return found
}

// worstCondition returns the condition of a pod by those of its containers. Of a pod whose
// containers crash in part, it is not known which of them does the work.
func worstCondition(all []condition) condition {
	if len(all) == 0 {
		return condition{state: blocker.WorkloadStarting, text: "no container has started"}
	}
	order := []blocker.Workload{blocker.WorkloadCrashing, blocker.WorkloadUnready, blocker.WorkloadStarting,
		blocker.WorkloadReady}
	slices.SortStableFunc(all, func(a, b condition) int {
		return cmp.Compare(slices.Index(order, a.state), slices.Index(order, b.state))
	})
	worst, best := all[0], all[len(all)-1]
	if worst.state == blocker.WorkloadCrashing && best.state == blocker.WorkloadReady {
		worst.state = blocker.WorkloadDegraded
	}
	return worst
}

// besideOthers returns the condition of a pod whose own containers, which run the controller, are in
// the condition, and the others, such as the driver beside a sidecar, in those: a controller whose
// pod fails in part may not work.
func besideOthers(own condition, others []condition) condition {
	if len(others) == 0 || own.state == blocker.WorkloadCrashing || own.state == blocker.WorkloadDegraded {
		return own
	}
	switch worst := worstCondition(others); {
	case worst.state == blocker.WorkloadCrashing || worst.state == blocker.WorkloadDegraded:
		worst.state = blocker.WorkloadDegraded
		return worst
	case own.state == blocker.WorkloadReady:
		return worst
	}
	return own
}

// containerConditions returns the states of the containers that run the controller, and of the init
// containers that fail; and those of the other containers.
func (p *program) containerConditions(pod *corev1.Pod, now time.Time) (own, others []condition) {
	for _, status := range pod.Status.InitContainerStatuses {
		c := containerCondition(status, now)
		if p.runsIn(status.Name) || c.state == blocker.WorkloadCrashing {
			own = append(own, c)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if c := containerCondition(status, now); p.runsIn(status.Name) {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	return own, others
}

// runsIn reports whether the container of the name runs the controller.
func (p *program) runsIn(name string) bool {
	return slices.ContainsFunc(p.containers, func(c corev1.Container) bool { return c.Name == name })
}

// containerCondition returns whether the container is ready, starting, crashing or unready.
func containerCondition(status corev1.ContainerStatus, now time.Time) condition {
	waiting, running, ended := status.State.Waiting, status.State.Running, status.State.Terminated
	switch {
	case waiting != nil && slices.Contains(waitingErrors, waiting.Reason):
		text := fmt.Sprintf("container %s waits: %s", status.Name, waiting.Reason)
		if waiting.Message != "" {
			text += " " + quoted(waiting.Message)
		}
		return condition{blocker.WorkloadCrashing, text, endedAt(status.LastTerminationState), status.Name}
	case ended != nil && ended.ExitCode != 0 &&
		status.RestartCount > 0: // the kubelet starts it again at once after the first end
		text := fmt.Sprintf("container %s ended with exit code %d (%s)", status.Name, ended.ExitCode, ended.Reason)
		return condition{blocker.WorkloadCrashing, text, ended.FinishedAt.Time, status.Name}
	case status.Ready:
		return condition{state: blocker.WorkloadReady}
	case running != nil && status.RestartCount == 0 && now.Sub(running.StartedAt.Time) < startTime:
		return condition{state: blocker.WorkloadStarting, text: fmt.Sprintf("container %s has started", status.Name),
			since: running.StartedAt.Time}
	case waiting != nil && status.RestartCount == 0:
		return condition{state: blocker.WorkloadStarting, text: fmt.Sprintf("container %s waits: %s", status.Name,
			waiting.Reason)}
	}
	return condition{state: blocker.WorkloadUnready, text: fmt.Sprintf("container %s is not ready, %s", status.Name,
		restarts(status.RestartCount))}
}

// waitingErrors are the reasons of waiting containers that report an error.
var waitingErrors = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

func endedAt(state corev1.ContainerState) time.Time {
	if state.Terminated == nil {
		return time.Time{}
	}
	return state.Terminated.FinishedAt.Time
}

// hasEnded reports whether the pod's containers have ended and will not start again.
func hasEnded(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podHas returns the status of the pod's condition, "" without it.
func podHas(pod *corev1.Pod, name corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == name {
			return c.Status
		}
	}
	return ""
}
