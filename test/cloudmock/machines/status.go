package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// request sends a request whenever the kubelet reaches the API server, until it is answered or the pod is no longer
// there. It returns false if the machine lost power.
func (p *pod) request(ctx context.Context, send func(context.Context, *v1.Pod) error) bool {
	var object *v1.Pod // nil: removed
	next := time.Now()
	for p.until(ctx, func(now time.Time) (bool, time.Time) {
		if object = p.seen; p.seenRemoved {
			object = nil
		}
		return p.machine.connected() && !now.Before(next), next
	}) {
		if object == nil {
			return true
		}
		err := send(ctx, object)
		if err == nil || apierrors.IsNotFound(err) {
			return ctx.Err() == nil
		}
		if ctx.Err() == nil {
			p.machine.cloud.warn(fmt.Errorf("pod %s on %s: %w", p.name, p.machine.name, err))
		}
		next = time.Now().Add(longestRetry)
	}
	return false
}

// isReady reports whether the running pod is ready now.
func (p *pod) isReady(object *v1.Pod, now time.Time) bool {
	if object.Annotations[annReadyAfter] == "" {
		return true
	}
	at := p.after(object, annReadyAfter)
	return !at.IsZero() && !now.Before(at)
}

// isReported reports whether the API shows the pod as it is: running, and ready or not.
func (p *pod) isReported(now time.Time) bool {
	want := conditionStatus(p.isReady(p.seen, now))
	return p.seen.Status.Phase == v1.PodRunning && slices.ContainsFunc(p.seen.Status.Conditions,
		func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == want })
}

func conditionStatus(is bool) v1.ConditionStatus {
	if is {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}

// reportRunning writes the status of running containers.
func (p *pod) reportRunning(ctx context.Context, object *v1.Pod) error {
	now := time.Now()
	ready := p.isReady(object, now)
	started := metav1.NewTime(p.started)
	return p.patchStatus(ctx, object, v1.PodStatus{
		Phase: v1.PodRunning, StartTime: &started,
		Conditions: conditions(now, ready, ""),
		ContainerStatuses: p.containers(object, ready, v1.ContainerState{
			Running: &v1.ContainerStateRunning{StartedAt: started}}),
	})
}

// reportEnd writes the status of ended containers.
func (p *pod) reportEnd(ctx context.Context, object *v1.Pod) error {
	phase, reason := v1.PodSucceeded, "PodCompleted"
	if p.exitCode != 0 {
		phase, reason = v1.PodFailed, "PodFailed"
	}
	started := metav1.NewTime(p.started)
	return p.patchStatus(ctx, object, v1.PodStatus{
		Phase: phase, StartTime: &started, Conditions: conditions(p.ended, false, reason),
		ContainerStatuses: p.containers(object, false, v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: p.exitCode, StartedAt: started, FinishedAt: metav1.NewTime(p.ended), Reason: "Ended",
		}}),
	})
}

// conditions returns the conditions that a kubelet writes.
func conditions(now time.Time, ready bool, reason string) []v1.PodCondition {
	all := []v1.PodCondition{{Type: v1.PodInitialized, Status: v1.ConditionTrue}}
	for _, kind := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		all = append(all, v1.PodCondition{Type: kind, Status: conditionStatus(ready), Reason: reason,
			LastTransitionTime: metav1.NewTime(now)})
	}
	return all
}

func (p *pod) containers(object *v1.Pod, ready bool, state v1.ContainerState) []v1.ContainerStatus {
	var all []v1.ContainerStatus
	for _, container := range object.Spec.Containers {
		isStarted := state.Running != nil
		all = append(all, v1.ContainerStatus{
			Name: container.Name, Ready: ready, Started: &isStarted, State: state, Image: container.Image,
			ImageID: "mock://" + container.Image, ContainerID: "mock://" + string(p.uid) + "-" + container.Name,
		})
	}
	return all
}

// patchStatus changes the status of the pod, and lets the kubelet see the result at once.
func (p *pod) patchStatus(ctx context.Context, object *v1.Pod, status v1.PodStatus) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": status})
	if err != nil {
		return err
	}
	cloud := p.machine.cloud
	object, err = cloud.client.CoreV1().Pods(object.Namespace).Patch(ctx, object.Name,
		types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	cloud.mu.Lock()
	defer cloud.mu.Unlock()
	p.learn(object)
	return nil
}

// learn takes a state of the pod, unless a newer one is known. The caller holds the lock.
func (p *pod) learn(object *v1.Pod) {
	if p.latest != nil {
		order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, p.latest.ResourceVersion)
		if err == nil && order < 0 {
			return
		}
	}
	p.latest = object
	p.changed.send()
}

// delete removes the pod from the API, as a kubelet does once nothing of the pod is left.
func (p *pod) delete(ctx context.Context, object *v1.Pod) error {
	err := p.machine.cloud.client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.uid))})
	if apierrors.IsConflict(err) { // another pod has the name
		return nil
	}
	return err
}
