package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Patience bounds every wait on a busy machine.
	Patience = 2 * time.Minute
	// poll is the time between two checks.
	poll = 100 * time.Millisecond
	// describePatience bounds the reads that describe a failure.
	describePatience = 10 * time.Second
)

// Await waits until check returns nil. The error says what was awaited, why it did not come,
// and what the pods that are not ready wait for.
func (c *Cluster) Await(ctx context.Context, what string, check func(context.Context) error) error {
	if err := await(ctx, what, check, c.ended); err != nil {
		return fmt.Errorf("%w%s", err, c.describePods(ctx))
	}
	return nil
}

// await waits until check returns nil, ended returns an error, or Patience is over.
func await(ctx context.Context, what string, check func(context.Context) error, ended func() error) error {
	limited, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("it was not so within %s", Patience))
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var last error
	for {
		err := check(limited)
		if err == nil {
			return nil
		}
		if last == nil || limited.Err() == nil { // the error at the deadline says nothing of the reason
			last = err
		}
		if err := ended(); err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("wait until %s: %w: %w", what, context.Cause(limited), last)
		case <-tick.C:
		}
	}
}

// describePods returns lines about the pods that are not ready.
func (c *Cluster) describePods(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), describePatience)
	defer cancel()
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("\nlist pods: %v", err)
	}
	events, err := c.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "type=" +
		corev1.EventTypeWarning})
	if err != nil {
		return fmt.Sprintf("\nlist events: %v", err)
	}
	return unready(pods.Items, events.Items)
}

// unready returns a line for each pod that is not ready: its phase, what its containers wait
// for, and the last warning about it.
func unready(pods []corev1.Pod, warnings []corev1.Event) string {
	var text strings.Builder
	for _, pod := range pods {
		if slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}) {
			continue
		}
		fmt.Fprintf(&text, "\npod %s/%s is %s", pod.Namespace, pod.Name, pod.Status.Phase)
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil {
				fmt.Fprintf(&text, "; container %s waits: %s %s", container.Name, waiting.Reason, waiting.Message)
			}
		}
		if last := lastWarning(warnings, pod.UID); last != nil {
			fmt.Fprintf(&text, "; %s: %s", last.Reason, last.Message)
		}
	}
	return text.String()
}

// lastWarning returns the newest warning about an object, or nil.
func lastWarning(warnings []corev1.Event, uid types.UID) *corev1.Event {
	var last *corev1.Event
	for i, event := range warnings {
		if event.InvolvedObject.UID == uid && (last == nil || last.LastTimestamp.Before(&event.LastTimestamp)) {
			last = &warnings[i]
		}
	}
	return last
}
