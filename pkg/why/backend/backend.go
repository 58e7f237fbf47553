package backend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// State is the observed state of a service.
type State int

const (
	// Unseen: something could not be read.
	Unseen State = iota
	// Absent: the service does not exist.
	Absent
	// Stopped: no endpoint is ready, no pod runs, and no workload wants a replica.
	Stopped
	// Crashing: no endpoint is ready, and the pods report an error now.
	Crashing
	// Unready: no endpoint is ready, and nothing tells why.
	Unready
	// Starting: no endpoint is ready, and a pod is starting.
	Starting
	// Ready: an endpoint is ready.
	Ready
)

// String returns the name of the value.
func (s State) String() string {
	return enum.Name(s, "unseen", "absent", "stopped", "crashing", "unready", "starting", "ready")
}

// Verdict says whether a caller of the service that fails now will be answered later.
func (s State) Verdict() blocker.Verdict {
	switch s {
	case Absent, Stopped, Crashing:
		return blocker.Stuck
	case Starting:
		return blocker.Waiting
	default: // Ready: the call fails for a reason that was not seen
		return blocker.Unknown
	}
}

// IsDown reports whether no endpoint can answer now.
func (s State) IsDown() bool { return s != Unseen && s != Ready }

// Seen is what was read of a service that exists. A part that is not complete could not be
// listed.
type Seen struct {
	Slices         []discoveryv1.EndpointSlice
	SlicesComplete bool
	Pods           []corev1.Pod // that the selector of the service selects
	PodsComplete   bool
	// NoSelector: the service selects no pods, and its endpoints may run outside of the cluster.
	NoSelector bool
	// Wanted: a workload wants replicas of these pods.
	Wanted          bool
	WantedIsUnknown bool
}

// Judge returns the state of a service that exists.
func Judge(seen Seen) State {
	pods := serverStates(seen)
	switch {
	case hasReadyEndpoint(seen.Slices):
		return Ready
	case !seen.SlicesComplete || !seen.PodsComplete:
		return Unseen
	case slices.Contains(pods, Starting) || slices.Contains(pods, Ready): // the endpoints follow
		return Starting
	case slices.Contains(pods, Unready):
		return Unready
	case slices.Contains(pods, Crashing):
		return Crashing
	case seen.WantedIsUnknown:
		return Unseen
	case seen.Wanted: // its pods are not created yet
		return Unready
	}
	return Stopped
}

func hasEndpoint(list []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(list, func(slice discoveryv1.EndpointSlice) bool { return len(slice.Endpoints) > 0 })
}

func hasReadyEndpoint(list []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(list, func(slice discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
			return len(endpoint.Addresses) > 0 && (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready)
		})
	})
}

// serverStates returns the states of what will serve. Without a selector the program that
// keeps the endpoints is not seen.
func serverStates(seen Seen) []State {
	if seen.NoSelector && hasEndpoint(seen.Slices) {
		return []State{Unready}
	}
	return podStates(seen.Pods)
}

// podStates returns the state of each pod that will serve.
func podStates(pods []corev1.Pod) []State {
	var states []State
	for i := range pods {
		ended := pods[i].Status.Phase == corev1.PodSucceeded || pods[i].Status.Phase == corev1.PodFailed
		if !ended && pods[i].DeletionTimestamp == nil {
			states = append(states, podState(&pods[i]))
		}
	}
	return states
}

func podState(pod *corev1.Pod) State {
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue:
			return Ready
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse: // a node may come
			return Unready
		}
	}
	return containerState(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses))
}

// containerState returns the state of a pod that is not ready.
func containerState(containers []corev1.ContainerStatus) State {
	state := Starting
	for _, container := range containers {
		switch {
		case container.State.Waiting != nil && !slices.Contains(startingReasons, container.State.Waiting.Reason):
			return Crashing
		case container.RestartCount > 0 || container.State.Terminated != nil && container.State.Terminated.ExitCode != 0:
			state = Unready
		}
	}
	return state
}

// startingReasons are why a container waits that is starting as usual.
var startingReasons = []string{"", "ContainerCreating", "PodInitializing"}
